"""Do the checkers refuse a solution with one mistake in it?

    python tests/course/exercise_mutants.py [--sample N] [EXERCISE...]

The mistakes are those of ``tests/notebooks/operators.py``. A mutant that does not end is refused.
Prints those that are taken for right; exits with 1 if fewer than 95 % are refused.
"""

import argparse
import random
import signal
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "notebooks")]
from exercise_parts import QUESTIONS, answer, verdict  # noqa: E402
from operators import mutants  # noqa: E402

LIMIT = 5  # seconds; a solution takes less than one
REFUSED = 0.95


class Endless(BaseException):
    """Raised in a mutant that takes too long."""


def stop(*_):
    raise Endless


def is_refused(name, code):
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        return verdict(name, answer(code, name)) is not None
    except Endless:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int)
    parser.add_argument("exercises", nargs="*", default=QUESTIONS)
    asked = parser.parse_args()
    signal.signal(signal.SIGALRM, stop)
    names = asked.exercises
    made = [(name, mutant) for name in names for mutant in mutants(QUESTIONS[name].solution)]
    if asked.sample:
        made = random.Random(0).sample(made, asked.sample)
    alive = [
        f"{name}: {mutant.change}" for name, mutant in made if not is_refused(name, mutant.source)
    ]
    print("\n".join([*alive, f"{len(made) - len(alive)} of {len(made)} mutants are refused"]))
    return int(len(alive) > (1 - REFUSED) * len(made))


if __name__ == "__main__":
    sys.exit(main())
