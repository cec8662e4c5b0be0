"""What a harm will cost, said before it is done: a sum of waits that are set or were measured."""

import re
from functools import cache

from d2lmgpu.course.breaking.training import PAGE

BATCH, SAVE_EVERY = 120, 20  # images, updates
MESSAGE = 8 * 50_892  # bytes of an allreduce: all gradients in float64, and two numbers
FULL, SLOW = 100e6, 10e6  # bits a second through a link; through that of a rank that is slowed
POLL = 1.0  # seconds between two questions of a torchrun that waits for a meeting
ROWS = {  # what is predicted and measured, and its unit
    "notice": ("until all have noticed, and ended", "s"),
    "meet": ("to meet again", "s"),
    "start": ("to start Python", "s"),
    "redo": ("to repeat updates", "s"),
    "together": ("until training is where it was", "s"),
    "pause": ("longest wait for an update", "s"),
    "update": ("an update afterwards", "s"),
    "updates": ("updates repeated", ""),
    "images": ("images computed again", ""),
    "lost": ("images lost in the epoch", ""),
    "twice": ("images counted twice", ""),
}
HARMS = {  # the button, and the one that undoes it where it does
    "worker": "Kill a worker",
    "host": "Kill a host",
    "launcher": "Kill the launcher and its store",
    "cut": "Cut a link",
    "fill": "Fill the disk",
    "slow": "Slow a rank",
}
MENDED = {"cut": "heal", "fill": "free", "slow": "quicken"}
MENDS = {"heal": "Heal the link", "free": "Make room on the disk", "quicken": "Full speed again"}


@cache
def option(name) -> float:
    """The number that ``name`` is given in the launcher or in the script."""
    text = "".join(
        (PAGE / file).read_text(encoding="utf-8") for file in ("elastic.py", "train_elastic.py")
    )
    return float(re.search(rf"\b{name}\s*=\s*(?:timedelta\(seconds=)?([\d.]+)", text)[1])


def cost(harm, ranks, hosts, lag, update, starts) -> dict:
    """What ``harm`` will cost a training of ``ranks`` on as many of ``hosts`` hosts.

    ``lag`` updates since the checkpoint; ``update``: seconds of one; ``starts``: (seconds from the
    launcher to the workers, seconds of Python in a worker), both measured as this run began.
    """
    after = ranks - (harm in ("host", "cut")) + (harm == "heal")
    if harm in ("fill", "slow", "free", "quicken"):
        ring = 2 * (ranks - 1) / ranks * MESSAGE * 8  # the bits that a rank sends in an allreduce
        then = {"slow": max(update, ring / SLOW), "quicken": ring / FULL}.get(harm, update)
        return {
            "restart": False,
            "ranks": ranks,
            "pause": max(update, then),
            "update": then,
            "updates": 0,
            "images": 0,
            "lost": 0,
            "twice": 0,
        }
    launch, python = starts
    look, gone = option("monitor-interval"), option("keep_alive_interval")
    gone *= option("keep_alive_max_attempt")
    again = option("CONNECT") + option("AGAIN") + launch  # the launcher's, until torchrun is there
    # The connections of a killed host are closed, so its neighbours notice as after a worker's end;
    # but they meet only after its torchrun has given no sign of life. Behind a cut all is silent.
    notice = {
        "worker": look,
        "host": look,
        "cut": max(gone, option("SILENCE")),
        "launcher": look,
        "heal": again + look,
    }
    meet = POLL + (option("last_call_timeout") if after < hosts else 0)
    if harm == "host":
        meet += gone
    if harm in ("launcher", "heal"):
        lag = 0  # torchrun ends, or starts its workers again: it asks them to end, and they save
    if harm == "launcher":
        meet = launch
    costs = {"notice": notice[harm], "meet": meet, "start": python, "redo": lag * update}
    return costs | {
        "together": sum(costs.values()),
        "restart": True,
        "ranks": after,
        "updates": lag,
        "images": lag * BATCH,
        "lost": 0,
        "twice": 0,
    }
