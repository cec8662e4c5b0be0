"""Measuring this machine from the lab, so that it has forecasts: what ``d2lmgpu forecast`` does."""

import subprocess
import sys

from d2lmgpu.machine.hardware import num_cores
from d2lmgpu.records import steady

TIME_LIMIT = 600  # seconds; it takes half a minute


def measure_here(network, framework, num_gpus) -> None:
    """In a worker: measure that training; ``num_gpus`` is what every job has.

    It is the command that does it: the chapters whose ``train`` it runs are not the lab's business.
    """
    subprocess.run([sys.executable, "-m", "d2lmgpu", "forecast", network, framework], check=True)


def end_in_words(outcome) -> str:
    """How it ended, in words: what the command refuses, it says in its last line."""
    if outcome.status == "finished":
        done = "This machine is measured: there are forecasts now."
        busy = steady.unsteady([], num_cores(), outcome.result.get("others"))
        return f"{done} They may be too slow: {busy}. Measure again without them." if busy else done
    if outcome.status == "failed" and outcome.log:
        return f"This machine could not be measured. {outcome.log.splitlines()[-1]}"
    return outcome.message
