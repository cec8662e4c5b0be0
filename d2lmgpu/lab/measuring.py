"""Measuring this machine from the lab, so that it has forecasts: what ``d2lmgpu forecast`` does."""

import subprocess
import sys

TIME_LIMIT = 600  # seconds; it takes half a minute


def measure_here(network, framework, num_gpus):
    """In a worker: measure that training; ``num_gpus`` is what every job has.

    It is the command that does it: the chapters whose ``train`` it runs are not the lab's business.
    """
    subprocess.run([sys.executable, "-m", "d2lmgpu", "forecast", network, framework], check=True)


def told(outcome):
    """How it ended, in words: what the command refuses, it says in its last line."""
    if outcome.status == "finished":
        return "This machine is measured: there are forecasts now."
    if outcome.status == "failed" and outcome.log:
        return f"This machine could not be measured. {outcome.log.splitlines()[-1]}"
    return outcome.message
