"""The answer to "does my script fit on that GPU?", without that GPU."""

from dataclasses import asdict, dataclass, field, replace

from d2lmgpu.memory.cards import CARDS, OnCard
from d2lmgpu.memory.fit import Fit
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.run import Limits, check_script, need, run

OBSERVER = "d2lmgpu.watch.fits.observer"
LIMITS = Limits(steps=2, seconds=60)  # the second has the optimizer's state from its beginning
# What can be changed in a script from outside; FSDP is in place of DistributedDataParallel.
REMEDIES = ("mixed precision", "recomputation", "SGD", "FSDP")
OF_MXNET = (
    "It cannot be told: the script trains with MXNet, and only what PyTorch puts on a GPU is "
    "followed. Another framework keeps other things of the same network, so an answer by PyTorch "
    "would be none."
)


@dataclass(frozen=True)
class ScriptFit:
    """What the first of ``devices`` takes. ``line``: which one has taken the last of the peak."""

    devices: int
    fit: Fit
    on: OnCard
    line: str | None
    remedies: dict[str, Fit] = field(default_factory=dict)  # what helps, most first

    def as_dict(self) -> dict:
        """For ``--json``; sizes in bytes."""
        content = {"devices": self.devices, "card": self.on.card.name, "verdict": self.on.verdict}
        content |= {"low": self.on.low, "high": self.on.high, "line": self.line} | asdict(self.fit)
        return content | {
            "remedies": {
                name: {"peak": fit.peak, "verdict": fit.on(self.on.card.name).verdict}
                for name, fit in self.remedies.items()
            }
        }

    def __str__(self):
        number = "1 device" if self.devices == 1 else f"{self.devices} devices, each"
        at = f"\n  the peak is at {self.line}" if self.line else ""
        helped = "".join(
            f"\n  with {name}: peak {fit.peak / 1e6:,.0f} MB, {fit.on(self.on.card.name)}"
            for name, fit in self.remedies.items()
        )
        return f"{number}: {self.on}\n  {self.fit}{at}{helped}"


def fits_script(
    script, arguments=(), card="", devices=(1,), unprotected=False, remedies=False
) -> list[ScriptFit]:
    """What two updates of ``script`` take on GPUs of the kind ``card``, for each of ``devices``.

    Nothing is computed on the GPU, so that none is needed; what the script does on the CPU is done.
    Raises WatchError for a card that is not known and a script that puts nothing on a GPU, does not
    train, or trains with MXNet. ``unprotected``: also where your files cannot be protected from it.
    ``remedies``: run it again with each of `REMEDIES`, and tell those with which it takes less.
    """
    path = check_script(script)
    need.choice("card", card, CARDS)
    for k in devices:
        need.whole("devices", k)
    answers = [_fit(path, arguments, CARDS[card], k, unprotected) for k in devices]
    if remedies:
        answers = [_with_remedies(answer, path, arguments, unprotected) for answer in answers]
    return answers


def _with_remedies(answer, path, arguments, unprotected):
    settings, smaller = (path, arguments, answer.on.card, answer.devices, unprotected), {}
    for remedy in REMEDIES if answer.devices > 1 else REMEDIES[:-1]:
        fit = _fit(*settings, remedy).fit
        if fit.peak < answer.fit.peak:
            smaller[remedy] = fit
    ordered = sorted(smaller.items(), key=lambda item: item[1].peak)
    return replace(answer, remedies=dict(ordered))


def _fit(path, arguments, card, devices, unprotected, remedy=None):
    options = {"card": card.name, "total": card.total, "devices": devices, "remedy": remedy}
    environ = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(devices)))}
    watched = run(path, arguments, 1, OBSERVER, options, LIMITS, environ, unprotected=unprotected)
    if any(r["mxnet"] for r in watched.reports) and not any(r["steps"] for r in watched.reports):
        raise WatchError(OF_MXNET)
    if watched.trouble:
        raise WatchError(watched.explanation)
    report = watched.reports[0]
    if not report["fit"]:
        raise WatchError(
            "The script puts nothing on a GPU: it takes the device 'cuda' where there is one, "
            "most often, as in torch.device('cuda' if torch.cuda.is_available() else 'cpu')."
        )
    fit = Fit(**report["fit"])
    return ScriptFit(devices, fit, fit.on(card.name), report["line"])
