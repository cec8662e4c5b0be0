"""The runs of a lab as a record, see ``d2lmgpu.records.store``."""

from d2lmgpu.machine.profiles import profile
from d2lmgpu.records import store

NAMES = (
    "train",
    "num_gpus",
    "batch_size",
    "lr",
    "num_samples",
    "sharing",
    "accuracies",
    "seconds",
    "started",
    "version",
    "unsteady",
    "diverged",
)


def record_of(trials, gpus) -> dict:
    """A record of those ``trials`` that have finished, on a machine with so many GPUs."""
    runs = [_as_recorded(trial) for trial in trials if trial.status == "finished"]
    about = store.provenance("a run of the lab in a notebook")
    return about | {"profile": str(profile(gpus)), "runs": runs}


def _as_recorded(trial):
    kind = "simulated" if trial.sharing == "simulated" else "measured"
    return {name: getattr(trial, name) for name in NAMES} | {"kind": kind}
