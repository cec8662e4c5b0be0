"""A page with the lab over numbers that a test has made, in place of a kernel's."""

from math import exp

from d2lmgpu.figures.site import embedded
from d2lmgpu.lab import scripts

FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SOURCE = """
class Source {
    constructor(numbers) {
        this.numbers = numbers;
        this.hearers = [];
        this.sent = [];
    }
    get(name) { return this.numbers[name]; }
    on(event, heard) { this.hearers.push([event, heard]); }
    off(event, heard) {
        this.hearers = this.hearers.filter(([e, h]) => e !== event || h !== heard);
    }
    send(message) { this.sent.push(message); }
    set(numbers) {
        Object.assign(this.numbers, numbers);
        for (const [event, heard] of this.hearers)
            if (event.slice("change:".length) in numbers) heard();
    }
}
"""
ABOUT = {
    "trains": ["LeNet, PyTorch", "LeNet, MXNet"],
    "takes_epochs": True,
    "most": 16,
    "kind": "cpu",
    "devices": 2,
    "cell": "from d2lmgpu.lab import TrainingLab\n\nTrainingLab(train)",
    "note": "This machine: 2 CPU cores, each of them a device. Runs on 1 to 2 devices are measured;"
    " on 3 to 16 they are simulated.",
}
SETTINGS = {
    "train": "LeNet, PyTorch",
    "num_gpus": 2,
    "batch_size": 256,
    "lr": 0.1,
    "scale_lr": False,
    "num_epochs": 4,
}
FORECAST = {
    "samples_per_second": 6240.0,
    "step_seconds": 0.041,
    "communication_share": 0.031,
    "best_num_gpus": 2,
    "error": [-0.34, 0.51],
    "fit_error": 0.02,
}
STATE = {
    "status": "idle",
    "message": "Ready.",
    "details": "",
    "hint": "The next run is measured.",
    "printed": {"lines": 0, "text": ""},
    "wrong": {},
    "forecast": FORECAST,
    "forecasts": [[1, 1.0], [2, 1.9], [4, 2.1]],
    "can_measure": True,
    "measuring": None,
}
PREDICTION = {
    "name": "lab/LeNet, PyTorch/2 devices, batch 256",
    "unit": "times",
    "low": 0,
    "high": 4,
    "question": "How many times as fast as one device will 2 devices be?",
    "remark": "",
    "predicted": None,
    "happened": None,
}
WHERE = {"loading": 0.002, "computing": 0.03, "exchanging": 0.006, "waiting": 0.002, "other": 0.001}


def run(id, num_gpus=1, batch_size=256, epochs=4, speed=3000, row=None, **others):
    """A run that learns the faster, the smaller its batch is."""
    points = [epoch / 10 for epoch in range(10 * epochs + 1)]
    samples = [[x, 6000 * x / speed, round(6000 * x)] for x in points]
    pace = 128 / batch_size
    about = {
        "id": id,
        "name": f"{num_gpus} devices, batch {batch_size}",
        "row": row or id,
        "status": "finished",
        "timing": "measured" if num_gpus < 3 else "simulated",
        "settings": {
            "train": "LeNet",
            "num_gpus": num_gpus,
            "batch_size": batch_size,
            "lr": 0.1,
            "num_epochs": epochs,
        },
        "curves": {
            "train loss": [[*at, 0.4 + 1.9 * exp(-pace * at[0])] for at in samples],
            "test accuracy": [[*at, 0.78 - 0.3 * exp(-pace * at[0])] for at in samples[10::10]],
            "samples/s": [[*at, speed * (1 + 0.03 * (i % 3))] for i, at in enumerate(samples)][1:],
        },
        "unsteady": False,
        "diverged": False,
        "forecast": 1.1 * speed,
        "where": WHERE,
        "memory": [150_000_000] * num_gpus,
    }
    return about | others


RUNS = [
    run(1, 1, 256, speed=3000),
    run(2, 2, 256, speed=5600, where=WHERE | {"computing": 0.016}),
    run(3, 2, 512, speed=5900),
    run(4, 8, 256, speed=2900, where=None),
]
TABLE = {
    "columns": ["Row", "Devices", "Batch", "Timing", "Samples/s", "Speedup"],
    "rows": [
        {
            "row": run["row"],
            "runs": [run["id"]],
            "alone": False,
            "cells": {
                "Row": str(run["row"]),
                "Devices": str(run["settings"]["num_gpus"]),
                "Batch": str(run["settings"]["batch_size"]),
                "Timing": run["timing"],
                "Samples/s": f"{run['forecast']:,.0f}",
                "Speedup": "1.87" if run["row"] == 2 else "",
            },
        }
        for run in RUNS
    ],
    "remarks": ["No speedup in row 3: it has another batch."],
    "baseline": None,
}
SPEEDUPS = [
    {
        "row": 1,
        "num_gpus": 1,
        "over_num_gpus": 1,
        "batch_size": 256,
        "median": 1.0,
        "low": 1.0,
        "high": 1.0,
    },
    {
        "row": 2,
        "num_gpus": 2,
        "over_num_gpus": 1,
        "batch_size": 256,
        "median": 1.8,
        "low": 1.6,
        "high": 1.9,
    },
]
LIVE = {
    "run": run(5, 2, 128, epochs=2, row=None, status="running", where=None),
    "progress": 0.5,
    "epoch": 2,
    "num_epochs": 4,
    "speed": 5500.0,
    "seconds_left": 12.0,
    "lanes": [
        [
            {"what": "computing", "start": 0.0, "end": 0.030},
            {"what": "waiting", "start": 0.030, "end": 0.034 + 0.002 * device},
            {"what": "exchanging", "start": 0.034 + 0.002 * device, "end": 0.042},
        ]
        for device in range(2)
    ],
}


def numbers(**others):
    """Everything that a kernel sends after four runs."""
    everything = {
        "about": ABOUT,
        "settings": SETTINGS,
        "state": STATE,
        "live": None,
        "runs": RUNS,
        "table": TABLE,
        "speedups": SPEEDUPS,
        "why": "Row 2 computes half as long a step as row 1.",
        "files": {"training-lab.csv": "train\n", "training-lab-record.json": "{}"},
        "hidden": [],
        "heard": "",
        "troubles": "",
    } | others
    return everything | {"names": [*everything]}


def html(**others):
    """A page that makes ``lab`` over ``source``; ``numbers`` may be others."""
    code = scripts.module().partition("export default")[0]
    start = "const lab = new Lab(document.querySelector('#place'), source);"
    given = embedded(numbers(**others))
    return (
        f"<style>{scripts.styles()}</style><div id='place'></div><script>{code}\n{SOURCE}"
        f"const source = new Source({given});\n{start}</script>"
    )


def sent(page):
    return [
        {name: value for name, value in message.items() if name != "token"}
        for message in page.evaluate("source.sent")
    ]
