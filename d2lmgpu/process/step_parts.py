"""The parts of a step of training: one name for each, and the words for what became of one.

Lanes of the lab, its sentence why a run was slower, and the answer of ``explain`` have these names.
Where the passes of a device are not told apart they are ``COMPUTING``; where a rank's exchange is
not told from its waiting for a peer, they are ``MEETING``.
"""

LOADING = "loading"
COMPUTING = "computing"
FORWARD = "forward"
BACKWARD = "backward"
UPDATE = "update"
EXCHANGING = "exchanging"
WAITING = "waiting"
MEETING = "exchanging and waiting"
EVALUATING = "evaluating"
LOCK = "lock"  # of devices in threads: what they wait for Python's lock
OTHER = "other"  # what is in no part
PASSES = (FORWARD, BACKWARD, COMPUTING)
FORWARDS = (FORWARD, COMPUTING)  # where a forward pass is
OF_A_LANE = (COMPUTING, EXCHANGING, WAITING, MEETING, LOADING)  # as the lab shows them

IN_WORDS = {
    LOADING: "loading",
    COMPUTING: "computing",
    FORWARD: "forward pass",
    BACKWARD: "backward pass",
    UPDATE: "update",
    EXCHANGING: "exchanging",
    WAITING: "waiting",
    MEETING: "exchanging and waiting",
    EVALUATING: "evaluating",
    LOCK: "waiting for Python's lock",
    OTHER: "all else",
}


def milliseconds(seconds) -> str:
    """With two digits, or all before the point."""
    value = 1000 * seconds
    return f"{value:,.0f} ms" if value >= 9.95 else f"{value:.1f} ms"


def part_change(words, before, after) -> str:
    """How the seconds of a part changed, in words."""
    if before < 0.01 * after:
        return f"{words} took {milliseconds(after)}"
    if milliseconds(before) == milliseconds(after):
        return f"{words} stayed at {milliseconds(after)}"
    verb = "fell" if after < before else "rose"
    return f"{words} {verb} from {milliseconds(before)} to {milliseconds(after)}"
