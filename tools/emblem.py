"""Draws the course's emblem, four devices that add up around a ring: python tools/emblem.py"""

from pathlib import Path

from d2lmgpu.figures.device import device
from d2lmgpu.figures.style import COLORS, GRAY

FILE = Path(__file__).parents[1] / "assets" / "emblem.svg"
SIDE, RADIUS = 18, 20  # of a device and of the ring, in a picture of 64 by 64


def emblem() -> str:
    """The picture as SVG: it stands on a light ground as well as on a dark one."""
    places = [(32, 32 - RADIUS), (32 + RADIUS, 32), (32, 32 + RADIUS), (32 - RADIUS, 32)]
    ring = f'<circle cx="32" cy="32" r="{RADIUS}" fill="none" stroke="{GRAY}" stroke-width="4"/>'
    devices = [device(*place, SIDE, color) for place, color in zip(places, COLORS, strict=True)]
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">'
    return "\n".join([svg, ring, *devices, "</svg>\n"])


if __name__ == "__main__":
    FILE.write_text(emblem(), encoding="utf-8")
