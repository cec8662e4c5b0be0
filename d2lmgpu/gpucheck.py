"""``make gpu-check``: every GPU of this machine, in both frameworks, checked and recorded.

Each framework runs in its own environment (see requirements-gpu.txt) and writes
``records/<machine>-gpu-check-<framework>.json``.
"""

import os
import subprocess
import sys
from importlib import import_module
from itertools import permutations
from pathlib import Path
from statistics import median

import numpy as np

from d2lmgpu import doctor, records
from d2lmgpu.devices import VARIABLE
from d2lmgpu.timing import Timer

# LeNet's parameters and the number of inputs that each weight's units sum over.
SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
FAN_IN = [9, None, 500, None, 800, None, 128, None]
BATCH, LR = 61, 0.1  # a batch that no number of GPUs divides
BOUND = 1e-9  # of the relative distance in float64, as between devices of a CPU
ELEMENTS, REPEATS = 2**26, 5  # a copy of 256 MiB of float32 takes milliseconds on any link


def update(d2l, devices):
    """LeNet's parameters, float64 and on the CPU, after one update on ``devices``: one list each.

    He start and one batch of noise, the same in every call.
    """
    rng = np.random.RandomState(0)
    start = [
        rng.randn(*shape) * np.sqrt(2 / fan_in) if fan_in else np.zeros(shape)
        for shape, fan_in in zip(SHAPES, FAN_IN)
    ]
    X, y = rng.rand(BATCH, 1, 28, 28), rng.randint(10, size=BATCH)
    params = [d2l.array(p) for p in start]
    replicas = [d2l.get_params(params, device) for device in devices]
    d2l.train_batch(d2l.array(X), d2l.array(y), replicas, devices, LR)
    return [d2l.get_params(replica, d2l.cpu()) for replica in replicas]


def squares(arrays):
    return sum((x**2).sum().item() for x in arrays)


def distance(replicas, expected):
    """The largest distance of a replica to ``expected``, relative to the length of that."""
    differences = [[p - q for p, q in zip(params, expected)] for params in replicas]
    return max(squares(difference) / squares(expected) for difference in differences) ** 0.5


def copy_times(d2l, source, target, elements):
    """Seconds of ``REPEATS`` copies from one device to another; None if data arrived changed."""
    here = d2l.array(np.random.RandomState(1).rand(elements).astype("float32"))

    def on(device, x):  # the backends' own way to bring an array to a device
        return d2l.split_batch(x, x, [device])[0][0]

    sent, received = on(source, here), on(target, here * 0)
    received[:] = sent  # the first copy sets the link up
    d2l.synchronize()
    timer = Timer()
    for _ in range(REPEATS):
        timer.start()
        received[:] = sent
        d2l.synchronize()
        timer.stop()
    return timer.times if squares([on(d2l.cpu(), received) - here]) == 0 else None


def check(d2l, devices, elements):
    """What the ``devices`` of the backend ``d2l`` compute and how fast they talk, as a record.

    ``single``: the distance of an update on each device to that on the CPU. ``parity``: of an
    update on 2, 3, … devices to that on one. ``copies``: seconds from each device to each other,
    None where the data arrived changed; bandwidth is ``bytes / seconds``.
    """
    (on_cpu,), (on_one,) = update(d2l, [d2l.cpu()]), update(d2l, devices[:1])
    copies = [
        {"source": i, "target": j, "bytes": 4 * elements,
         "seconds": copy_times(d2l, devices[i], devices[j], elements)}
        for i, j in permutations(range(len(devices)), 2)
    ]  # fmt: skip
    return {
        "kind": "measured",
        "single": [
            {"device": i, "distance": distance(update(d2l, [device]), on_cpu)}
            for i, device in enumerate(devices)
        ],
        "parity": [
            {"num_devices": k, "distance": distance(update(d2l, devices[:k]), on_one)}
            for k in range(2, len(devices) + 1)
        ],
        "copies": copies,
    }


def report(found):
    """The lines that say what ``check`` found, and the problems among them."""
    lines, problems = [], []

    def say(line, good):
        lines.append(line)
        if not good:
            problems.append(line)

    for one in found["single"]:
        i, off = one["device"], one["distance"]
        say(f"device {i}: an update is {off:.1e} from the CPU's (allowed: {BOUND})", off <= BOUND)
    for many in found["parity"]:
        k, off = many["num_devices"], many["distance"]
        say(f"{k} devices: an update is {off:.1e} from one's (allowed: {BOUND})", off <= BOUND)
    for copy in found["copies"]:
        way = f"device {copy['source']} to {copy['target']}"
        if copy["seconds"] is None:
            say(f"{way}: the data arrived changed", False)
        else:
            say(f"{way}: {copy['bytes'] / median(copy['seconds']) / 1e9:.1f} GB/s", True)
    if len(found["single"]) == 1:
        lines.append("There is one GPU: nothing was checked between two.")
    return lines, problems


def check_framework(name, gpus):
    """Check every GPU with one framework, print what is found and record it; 1 for a problem.

    ``gpus`` is how many there are, by the driver.
    """
    title = doctor.TITLES[name]
    try:
        d2l = import_module(f"d2lmgpu.{name}")
    except ImportError as error:
        print(f"{title}: {error}")
        return 1
    if d2l.num_gpus() < gpus:
        print(
            f"{title} sees {d2l.num_gpus()} of {doctor.count(gpus, 'GPU')}. It takes"
            f" {doctor.GPU_BUILD[name]}, and CUDA_VISIBLE_DEVICES must hide none."
        )
        return 1
    found = check(d2l, d2l.try_all_gpus(), ELEMENTS)
    lines, problems = report(found)
    print(*(f"{title}: {line}" for line in lines), sep="\n")
    record = records.provenance("make gpu-check") | found
    print("Written to", records.write("records", f"gpu-check-{name}", record))
    return bool(problems)


def main(pythons) -> int:
    """Check each framework in the environment of its Python, ``{framework: path}``.

    Returns 0 if all is well, 1 otherwise, with a line for each thing that is missing or wrong.
    """
    gpus = doctor.installed_gpus()
    if not gpus:
        print(
            "No GPU to check: nvidia-smi lists none. Install NVIDIA's driver, or run this on a"
            " machine with a GPU. Without one, every chapter runs on the CPU's cores."
        )
        return 1
    print(*gpus, sep="\n", flush=True)
    wrong = []
    for name, python in pythons.items():
        if not Path(python).exists():
            needs = doctor.GPU_BUILD[name]
            print(f"{doctor.TITLES[name]}: there is no {python}. It takes {needs}.", flush=True)
            wrong.append(name)
            continue
        command = [python, "-m", "d2lmgpu.gpucheck", name, str(len(gpus))]
        if subprocess.run(command, env=os.environ | {VARIABLE: "gpu"}).returncode:
            wrong.append(name)
    print("The check failed for", " and ".join(wrong)) if wrong else print("No problem found.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(check_framework(sys.argv[1], int(sys.argv[2])))
