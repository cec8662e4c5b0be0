"""Draws what other sites show of this one, assets/social-card.png: python tools/social_card.py

The title beside the cover, rendered by Chromium. The file keeps the hash of what it was drawn from.
"""

import hashlib
import sys
from pathlib import Path

from PIL import Image, PngImagePlugin

sys.path.insert(0, str(Path(__file__).parent))
from chromium import chromium
from cover import cover
from emblem import emblem

FILE = Path(__file__).parents[1] / "assets" / "social-card.png"
SIZE = {"width": 1200, "height": 630}  # what most sites ask for
PAGE = f"""<!DOCTYPE html><style>
body {{ display: grid; grid-template-columns: 460px 1fr; align-items: center; gap: 20px; margin: 0;
  padding: 0 30px 0 70px; height: 100vh; box-sizing: border-box; color: #222832; background: #fff;
  border-bottom: 14px solid #0072b2; font-family: "Liberation Sans", sans-serif; }}
h1 {{ margin: 24px 0; font-size: 68px; line-height: 1.08; }} p {{ margin: 0; font-size: 30px; }}
.cover {{ margin: 0; max-width: none; }} body > div > svg {{ width: 110px; height: 110px; }}
</style><div>{emblem()}<h1>Hands-On Multi-GPU Training</h1>
<p>Train on several devices, check that the result is right, and know whether it will pay.</p></div>
{cover()}"""
SOURCE = hashlib.sha256(PAGE.encode()).hexdigest()


def draw() -> None:
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        page.set_content(PAGE)
        page.screenshot(path=FILE)
    kept = PngImagePlugin.PngInfo()
    kept.add_text("Source", SOURCE)
    with Image.open(FILE) as picture:
        picture.convert("P", palette=Image.Palette.ADAPTIVE).save(FILE, optimize=True, pnginfo=kept)


if __name__ == "__main__":
    draw()
