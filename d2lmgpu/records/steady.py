"""Whether the times of a run say how fast it is, or what else the machine did meanwhile.

It is one rule, for the lab, for records and for the page that trains (assets/training/steady.js,
with the same numbers): nothing else may have made a run more than `MOST` times as slow, as far as
can be seen. From outside, which a browser cannot: the cores that others left were enough, up to
this factor. And from inside, by the pieces of a run, without the first, which warms up, and without
the fastest and the slowest tenth. Where the outside is not seen, none is more than `MOST` times as
slow as another. Where it is seen, single ones may be: a step of a few hundredths of a second varies
by more on an idle machine. Then their mean is at most `MOST` times what the fastest quarter takes
at most: a short run has so few pieces that the very fastest is a matter of luck.
"""

from statistics import fmean

from d2lmgpu.machine import hardware

MOST = 1.25  # times as slow
PIECE = 0.05  # seconds: of a shorter one a clock tells little


def pieces(points) -> list:
    """Seconds per sample of pieces of at least `PIECE` seconds, of ``(seconds, samples)`` each."""
    slowness, seconds, samples = [], 0.0, 0
    for more_seconds, more_samples in points:
        seconds, samples = seconds + more_seconds, samples + more_samples
        if seconds >= PIECE and samples > 0:
            slowness.append(seconds / samples)
            seconds, samples = 0.0, 0
    return slowness


def middle(pieces) -> list:
    """The pieces from fast to slow, without the first one and the fastest and the slowest tenth."""
    rest = sorted(pieces[1:])
    tenth = len(rest) // 10
    return rest[tenth : len(rest) - tenth]


def spread(pieces) -> float:
    """How many times as slow the slowest piece is as the fastest, see above; 1 of too few."""
    rest = middle(pieces)
    return rest[-1] / rest[0] if rest and rest[0] > 0 else 1.0


def above_the_fast(pieces) -> float:
    """How many times as slow the mean piece is as the fast quarter, see above; 1 of too few."""
    rest = middle(pieces)
    return fmean(rest) / rest[(len(rest) - 1) // 4] if rest and rest[0] > 0 else 1.0


def slowed(num_gpus, others, cores, quota) -> float:
    """How many times as slow ``num_gpus`` devices are that lack the cores which others have.

    Each device keeps a core busy, as far as the ``quota`` goes: the cores' time, in whole cores,
    that a limit leaves to this process. Of the ``cores`` on which it may run, with a quota, too,
    others keep ``others`` busy on the average; None where that is not known.
    """
    wanted = min(num_gpus, cores, max(1, quota))
    if others is None or cores - others >= wanted:
        return 1.0
    return wanted / max(cores - others, 0.01 * wanted)


def unsteady(pieces, num_gpus=1, others=None) -> str:
    """Why a run's times are not told apart from what else the machine did; "" if they are."""
    cores = hardware.affinity()
    if slowed(num_gpus, others, cores, hardware.quota()) > MOST:
        return f"other programs kept {others:.1f} of {cores} cores busy"
    if others is None and (apart := spread(pieces)) > MOST:
        times = f"{apart:.1f} times as long as others"
        return f"parts of it took up to {times}, as when other programs run"
    if others is not None and (apart := above_the_fast(pieces)) > MOST:
        times = f"{apart:.1f} times as long as its fast ones"
        return f"its parts took {times} on the average, as when other programs run"
    return ""


def of_epochs(seconds, sharing) -> str:
    """The same by the seconds of the epochs alone; simulated devices are no measurement."""
    return "" if sharing == "simulated" else unsteady(seconds)
