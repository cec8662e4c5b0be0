"""The explorer of layouts: how to factor a number of GPUs for a network, a batch and a sequence.

Its script computes all of it in the page, with the model of ``d2lmgpu.costmodel.layouts``, number
for number; ``layoutmodel.js`` is that model, and ``layouts.js`` draws what it says.
"""

from d2lmgpu.figures.checks import is_named, need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.figures.site import inlined

CHOICES = ("network", "batch", "sequence", "machine", "gpus")


class LayoutExplorer(Moving):
    """All layouts of a number of GPUs: which fit, and how long a step takes.

    Parameters
    ----------
    choices : dict
        Of each of `CHOICES` what it offers, {text: value}: a network's sizes and a machine's
        numbers as dicts, a batch and a sequence in tokens, a number of GPUs.
    start : dict
        Of each of `CHOICES` the text that is chosen at first.
    given : dict
        What else the model needs: its constants, and the band of the step's time.
    words : str
        What is said where there are no scripts.
    about : str
        What the numbers are, and where the band comes from.

    Raises
    ------
    FigureError
        For choices that offer nothing, and a start that is not offered.
    """

    def __init__(self, choices: dict, start: dict, given: dict, words: str, about: str):
        good = is_named(choices, lambda of: isinstance(of, dict) and len(of) > 0)
        need(good and tuple(choices) == CHOICES, "choices", choices, f"{CHOICES}, each {{text: …}}")
        for name, offered in choices.items():
            need.choice(f"start[{name!r}]", start.get(name), tuple(offered))
        need(tuple(start) == CHOICES, "start", start, f"a text for each of {CHOICES}")
        super().__init__(
            "layouts", {"choices": choices, "start": start, "given": given}, words, about
        )

    def _repr_html_(self):
        return inlined("figures/layoutmodel.js") + super()._repr_html_()
