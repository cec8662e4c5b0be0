"""Predict first, in the lab: how many times as fast as one device the next run will be."""

from d2lmgpu.predictions import store
from d2lmgpu.predictions.entry import Entry

UNIT = "times"
UNSTEADY = "The last run was unsteady: it judges no prediction."
LONGEST = 60  # letters of a train's name in that of a question


def asked(model) -> tuple[str, str] | None:
    """``(name, question)`` of the present settings; None where no speedup will be told.

    That is on one device and on simulated ones. The learning rate does not change the speed.
    """
    if model.num_devices is None or not 2 <= model.num_gpus <= model.num_devices or model.wrong:
        return None
    devices = f"{model.num_gpus} devices"
    name = f"lab/{model.train[:LONGEST]}/{devices}, batch {model.batch_size}"
    return name, f"How many times as fast as one device will {devices} be, with this batch?"


def prediction(model) -> Entry | None:
    """What ``predictions.js`` draws of the present settings, see ``store.read``; or None."""
    question = asked(model)
    if question is None:
        return None
    name, words = question
    known, speedup = store.read(name), measured(model)
    if speedup is not None and speedup != (known["happened"] or {}).get("value"):
        store.record_outcome(name, speedup)  # once a run, not with every setting that is tried
        known = store.read(name)
    if known["predicted"] and model.runs and model.runs[-1].unsteady:
        known["remark"] = " ".join(filter(None, (known["remark"], UNSTEADY)))
    return known | {"question": words, "unit": UNIT, "low": 0, "high": 2 * model.num_gpus}


def lock(model, value) -> None:
    """Keep ``value`` as the reader's; raises PredictionError where another one is locked."""
    if question := asked(model):
        store.lock(question[0], value, question[1], UNIT)


def take_back(model) -> None:
    """Forget what was locked; raises PredictionError where the outcome was shown."""
    if question := asked(model):
        store.take_back(question[0])


def measured(model) -> float | None:
    """The speedup over one device in the newest row of the present train, devices and batch."""
    rows = model.table()
    on_one = {row.number for row in rows if row.trial.num_gpus == 1}
    wanted = (model.train, model.num_gpus, model.batch_size)
    for row in reversed(rows):
        trial, sound = row.trial, row.measured and row.explained
        if sound and (trial.train, trial.num_gpus, trial.batch_size) == wanted:
            return row.speedup if row.over in on_one and row.scaling == "strong" else None
    return None
