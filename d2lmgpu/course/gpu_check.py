"""``make gpu-check``: every GPU of this machine, in both frameworks, checked and recorded.

Each framework runs in its own environment (see requirements-gpu.txt) and writes
``records/<machine>-gpu-check-<framework>.json``. Then the cells of the chapters that take GPUs run,
for ``records/<machine>-gpu-cells.json``.
"""

import os
import subprocess
import sys
from importlib import import_module
from itertools import permutations
from pathlib import Path
from statistics import median

import numpy as np

from d2lmgpu.backend.arguments import LENET_SHAPES
from d2lmgpu.course.doctor import GPU_BUILD
from d2lmgpu.course.gpu_cells import check_cells
from d2lmgpu.launch import launch
from d2lmgpu.machine.devices import VARIABLE
from d2lmgpu.machine.environ import variable
from d2lmgpu.machine.hardware import installed_gpus
from d2lmgpu.machine.timing import Timer
from d2lmgpu.process.settings import TITLES
from d2lmgpu.records import store
from d2lmgpu.records.run import counted

BATCH, LR = 61, 0.1  # a batch that no number of GPUs divides
BOUND = 1e-9  # of the relative distance in float64, as between devices of a CPU
ELEMENTS, REPEATS = 2**26, 5  # a copy of 256 MiB of float32 takes milliseconds on any link


def update(d2l, devices) -> list:
    """LeNet's parameters, float64 and on the CPU, after one update on ``devices``: one list each.

    Random weights and one batch of noise, the same in every call; biases start at zero.
    """
    rng = np.random.RandomState(0)
    start = [0.1 * rng.randn(*s) if len(s) > 1 else np.zeros(s) for s in LENET_SHAPES]
    params = [d2l.array(p) for p in start]
    X, y = rng.rand(BATCH, 1, 28, 28), rng.randint(10, size=BATCH)
    replicas = [d2l.get_params(params, device) for device in devices]
    d2l.train_batch(d2l.array(X), d2l.array(y), replicas, devices, LR)
    return [d2l.get_params(replica, d2l.cpu()) for replica in replicas]


def squares(arrays) -> int:
    return sum((x**2).sum().item() for x in arrays)


def distance(replicas, expected) -> float:
    """The largest distance of a replica to ``expected``, relative to the length of that."""
    differences = [[p - q for p, q in zip(params, expected)] for params in replicas]
    return max(squares(difference) / squares(expected) for difference in differences) ** 0.5


def copy_times(d2l, source, target, elements) -> list | None:
    """Seconds of ``REPEATS`` copies from one device to another; None if data arrived changed."""
    host_array = d2l.array(np.random.RandomState(1).rand(elements).astype("float32"))

    def on(device, x):  # the backends' own way to bring an array to a device
        return d2l.split_batch(x, x, [device])[0][0]

    sent, received = on(source, host_array), on(target, host_array * 0)
    received[:] = sent  # the first copy sets the link up
    d2l.synchronize()
    timer = Timer()
    for _ in range(REPEATS):
        timer.start()
        received[:] = sent
        d2l.synchronize()
        timer.stop()
    return timer.times if squares([on(d2l.cpu(), received) - host_array]) == 0 else None


def check(d2l, devices, elements) -> dict:
    """What the ``devices`` of the backend ``d2l`` compute and how fast they talk, as a record.

    ``single``: the distance of an update on each device to that on the CPU. ``parity``: of an
    update on 2, 3, … devices to that on one. ``copies``: seconds from each device to each other,
    None where the data arrived changed; bandwidth is ``bytes / seconds``.
    """
    (on_cpu,), (on_one,) = update(d2l, [d2l.cpu()]), update(d2l, devices[:1])
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
        "copies": [
            {
                "source": i,
                "target": j,
                "bytes": 4 * elements,
                "seconds": copy_times(d2l, devices[i], devices[j], elements),
            }
            for i, j in permutations(range(len(devices)), 2)
        ],
    }


def ddp_update() -> tuple:
    """A rank's parameters, float64, after one update by DistributedDataParallel; its backend.

    The batch is that of `update`, split over the ranks; runs in the workers of ``launch``.
    """
    import torch
    from torch import distributed as dist
    from torch import nn

    from d2lmgpu import torch as d2l

    rank, k = dist.get_rank(), dist.get_world_size()
    device, rng = d2l.try_gpu(rank), np.random.RandomState(0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10)).double()
    net = nn.parallel.DistributedDataParallel(net.to(device))
    X, y = d2l.array(rng.rand(BATCH, 1, 28, 28)), d2l.array(rng.randint(10, size=BATCH))
    X, y = (data.tensor_split(k)[rank].to(device) for data in (X, y))
    loss = nn.functional.cross_entropy(net(X), y, reduction="sum") * k / BATCH
    loss.backward()  # in here the ranks average
    return dist.get_backend(), [(p - LR * p.grad).detach().cpu().numpy() for p in net.parameters()]


def check_sharing(d2l, framework, gpus) -> dict:
    """Updates where replicas share a GPU and where a GPU and cores work together, as a record.

    ``shared``: by ``D2LMGPU_DEVICES``, the distance of an update to that on the CPU; in PyTorch
    also of one by DDP, in processes that meet over the ``backend``.
    """

    def updates(choice):
        with variable(VARIABLE, choice):
            devices = d2l.try_all_gpus()
            yield None, update(d2l, devices)
            if framework == "torch":
                ranks = launch(ddp_update, num_processes=len(devices))
                yield ranks[0][0], [params for _, params in ranks]

    expected = [replicas[0] for _, replicas in updates("cpu:1")]
    return {
        "shared": [
            {"choice": choice, "backend": backend, "distance": distance(replicas, right)}
            for choice in (f"gpu:{gpus + 1}", "gpu:1,cpu:2")
            for (backend, replicas), right in zip(updates(choice), expected)
        ]
    }


def report(checked) -> tuple[list, list]:
    """The lines that say what ``check`` found, and the problems among them."""
    updates = [(f"device {single['device']}", "the CPU's", single) for single in checked["single"]]
    updates += [(f"{many['num_devices']} devices", "one's", many) for many in checked["parity"]]
    for shared in checked.get("shared", ()):
        by = f", DDP over {shared['backend']}" if shared["backend"] else ""
        updates.append((f"{VARIABLE}={shared['choice']}{by}", "the CPU's", shared))
    lines = []  # lines, and whether they are good
    for what, whose, distances in updates:
        off = distances["distance"]
        line = f"{what}: an update is {off:.1e} from {whose} (allowed: {BOUND})"
        lines.append((line, off <= BOUND))
    for copy in checked["copies"]:
        speed = copy["seconds"] and copy["bytes"] / median(copy["seconds"]) / 1e9
        what = f"{speed:.1f} GB/s" if speed else "the data arrived changed"
        lines.append((f"device {copy['source']} to {copy['target']}: {what}", bool(speed)))
    if len(checked["single"]) == 1:
        lines.append(("There is one GPU: nothing was checked between two.", True))
    return [line for line, _ in lines], [line for line, good in lines if not good]


def check_framework(name, gpus) -> bool:
    """Check every GPU with one framework, print what is found and record it; 1 for a problem.

    ``gpus`` is how many there are, by the driver.
    """
    title = TITLES[name]
    try:
        d2l = import_module(f"d2lmgpu.{name}")
    except ImportError as error:
        print(f"{title}: {error}")
        return 1
    num_gpus = d2l.num_gpus()
    if num_gpus < gpus:
        needs = f"{GPU_BUILD[name]}, and CUDA_VISIBLE_DEVICES must hide none"
        print(f"{title} sees {num_gpus} of {counted(gpus, 'GPU')}. It takes {needs}.")
        return 1
    checked = check(d2l, d2l.try_all_gpus(), ELEMENTS) | check_sharing(d2l, name, num_gpus)
    lines, problems = report(checked)
    print(*(f"{title}: {line}" for line in lines), sep="\n")
    record = store.provenance("make gpu-check") | checked
    print("Written to", store.write("records", f"gpu-check-{name}", record))
    return bool(problems)


def main(pythons) -> int:
    """Check each framework in the environment of its Python, ``{framework: path}``.

    Returns 0 if all is well, 1 otherwise, with a line for each thing that is missing or wrong.
    """
    gpus = installed_gpus()
    if not gpus:
        print(
            "No GPU to check: nvidia-smi lists none. Install NVIDIA's driver, or run this on a"
            " machine with a GPU. Without one, every chapter runs on the CPU's cores."
        )
        return 1
    print(*gpus, sep="\n", flush=True)
    wrong = []
    for name, python in pythons.items():
        command = [python, "-m", "d2lmgpu.course.gpu_check", name, str(len(gpus))]
        if not Path(python).exists():
            print(f"{TITLES[name]}: there is no {python}. It takes {GPU_BUILD[name]}.", flush=True)
            wrong.append(name)
        elif subprocess.run(command, env=os.environ | {VARIABLE: "gpu"}).returncode:
            wrong.append(name)
    if "torch" not in wrong and check_cells("chapters", len(gpus), pythons["torch"]):
        wrong.append("cells of the chapters")
    print("The check failed for", " and ".join(wrong)) if wrong else print("No problem found.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(check_framework(sys.argv[1], int(sys.argv[2])))
