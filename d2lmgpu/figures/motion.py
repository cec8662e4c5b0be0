"""What pictures that move are in a notebook and in a page: see motion.js for their clock."""

from html import escape

from d2lmgpu.figures.site import embedded, inlined


class Moving:
    """An element that a script of this folder makes move; without scripts its words show.

    kind names the script and the style, `kind`.js and `kind`.css, and is the element's class. data
    is what the script reads; words say the start of it, and about what it is of. drawn is the
    picture, of a kind whose script does not draw it; its alternatives are its words.
    """

    def __init__(self, kind: str, data: dict, words: str, about: str = "", drawn: str = ""):
        self.kind = kind
        self.words = words
        texts = (about,) if drawn else (words, about)
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in texts if text)
        self.html = (
            f'<div class="explore moving {kind}">'
            f'<script type="application/json">{embedded(data)}</script>{drawn}{paragraphs}</div>'
        )

    def __repr__(self):
        return self.words

    def _repr_html_(self):
        styles = inlined("figures/explorer.css", f"figures/{self.kind}.css")
        scripts = (f"figures/{name}.js" for name in ("address", "motion", self.kind))
        return styles + self.html + inlined(*scripts)
