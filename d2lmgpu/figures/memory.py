"""The explorer of memory: a network, how it is trained, a card, and whether that fits.

All numbers are those of ``d2lmgpu.memory.peaks``, whose sums are put into the page; its script adds
them up for whatever batch or size the reader types in. Without scripts the start's answer shows.
"""

from html import escape

from d2lmgpu.figures.checks import need
from d2lmgpu.figures.site import embedded, inlined
from d2lmgpu.memory import peaks
from d2lmgpu.memory.cards import CARDS, CONTEXT, GIB, MISS

# text -> (kind, the numbers of its config.json), each of the publication that is named. Of the 8192
# tokens of Llama 3 it starts with a quarter.
MODELS = {
    "GPT-2, 124 million": ("GPT-2", (12, 768, 12, 12, 3072, 50257, 1024)),  # Radford et al., 2019
    "BERT-base": ("BERT", (12, 768, 12, 12, 3072, 30522, 512)),  # Devlin et al., 2019
    "Llama 3 8B": ("Llama", (32, 4096, 32, 8, 14336, 128256, 2048)),  # Grattafiori et al., 2024
}
FIXED = {
    "ViT-B/16, 224x224": "ViT-B/16",
    "ResNet-50, 224x224": "ResNet-50",
    "U-Net, 512x512": "U-Net",
}
FIELDS = {  # of a language model
    "L": "Layers",
    "d": "Hidden size",
    "h": "Heads",
    "g": "Key-value heads",
    "f": "Intermediate size",
    "V": "Vocabulary",
    "T": "Tokens",
}
DEVICES = [1, 2, 4, 8, 16, 64]
START = {
    "network": "Llama 3 8B",
    "batch": 1,
    "precision": "amp bfloat16",
    "optimizer": "AdamW",
    "strategy": "FSDP",
    "devices": 4,
    "card": "H100 80GB",
}


class MemoryExplorer:
    """Whether a training fits on a card, for the choices of ``START``, or others given.

    Raises FigureError for a choice that is not offered.
    """

    def __init__(self, **start):
        self.start = START | start
        self._choices = {
            "network": [*MODELS, *FIXED],
            "precision": [*peaks.PRECISIONS],
            "optimizer": [*peaks.OPTIMIZERS],
            "strategy": [*peaks.STRATEGIES],
            "devices": DEVICES,
            "card": sorted(CARDS, key=lambda name: CARDS[name].total),
        }
        for name, offered in self._choices.items():
            need(self.start[name] in offered, name, self.start[name], f"one of {offered}")
        need(self.start.keys() == START.keys(), "start", start, f"choices of {[*START]}")

    def __repr__(self):
        return f"{self.answer()} (Run this cell, and the choices are here.)"

    def _repr_html_(self):
        return (
            inlined("figures/explorer.css", "figures/memory.css")
            + self._html()
            + inlined("figures/memory.js")
        )

    def answer(self) -> str:
        """What is said to the start."""
        at = self.start
        kind, numbers = MODELS.get(at["network"], (FIXED.get(at["network"]), ()))
        names = [peaks.NUMBERS[letter] for letter in FIELDS]
        size = peaks.peak(
            kind,
            at["precision"],
            at["optimizer"],
            at["strategy"],
            batch_size=at["batch"],
            devices=at["devices"],
            **dict(zip(names, numbers)),
        )
        return f"Peak {size / GIB:.1f} GiB, modelled. {peaks.fit_on(size, at['card'])}."

    def _html(self):
        own = [f"yours, built like {kind}" for kind, _ in MODELS.values()]
        networks = [
            {"kind": kind, "numbers": dict(zip(FIELDS, numbers))}
            for kind, numbers in MODELS.values()
        ]
        networks += [{"kind": kind} for kind in FIXED.values()]
        networks += [{"kind": kind, "own": True} for kind, _ in MODELS.values()]
        data = {
            "sums": peaks.DATA["sums"],
            "sumsOf": peaks.SUMS_OF,
            "remembers": peaks.REMEMBERS,
            "parameters": peaks.DATA["parameters"],
            "many": peaks.MANY,
            "networks": networks,
            "cards": [{"name": name, "total": CARDS[name].total} for name in self._choices["card"]],
            "context": CONTEXT,
            "miss": MISS,
            "least": peaks.LEAST,
            "held": peaks.HELD,
        }
        controls = [
            self._select("Network", "network", self._choices["network"] + own),
            *(_number(label, letter, hidden=letter != "T") for letter, label in FIELDS.items()),
            _number("Batch on each device", "n", self.start["batch"]),
            self._select("Numbers", "precision"),
            self._select("Optimizer", "optimizer"),
            self._select("Strategy", "strategy"),
            self._select("Devices", "devices"),
            self._select("Card", "card"),
        ]
        return (
            f'<div class="memory-explorer"><script type="application/json">{embedded(data)}'
            f'</script><div class="explore-controls">{"".join(controls)}</div>'
            f'<div class="memory-answer" role="status"><p>{escape(self.answer())}</p></div></div>'
        )

    def _select(self, label, name, texts=None):
        options = "".join(
            f"<option{' selected' if text == self.start[name] else ''}>{escape(str(text))}</option>"
            for text in texts or self._choices[name]
        )
        field = f'<select data-name="{name}" autocomplete="off">{options}</select>'
        return f"<label>{label}{field}</label>"


def _number(label, letter, value=1, hidden=False):
    return (
        f"<label{' hidden' if hidden else ''}>{label}"
        f'<input type="number" min="1" step="1" value="{value}" data-letter="{letter}" '
        'inputmode="numeric" autocomplete="off"></label>'
    )
