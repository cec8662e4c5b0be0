"""A training on hosts that is harmed, as a test sees it: by what its ranks have logged."""

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import safetensors.torch
import torch
from processes import commands

from d2lmgpu.course.breaking import training
from d2lmgpu.course.breaking.training import LIMIT, PAGE

FOLDER = Path(__file__).parent
NUM_TRAIN, BATCH = 310, 60  # the last batch of an epoch has 10 images
SETTINGS = [f"--num-train={NUM_TRAIN}", f"--batch-size={BATCH}"]


class Training(training.Training):
    """The page's script on hosts, which dies on demand, kept alive by the page's launcher."""

    def __init__(self, cluster, folder, *options, waits_for_all=False):
        self.script = (FOLDER / "dies_on_demand.py", folder)
        if waits_for_all:  # else one host may begin with an update of its own, by its own chance
            text = self.launcher.read_text()
            assert text.count("last_call_timeout=1,") == 1
            self.launcher = folder / "elastic.py"
            self.launcher.write_text(text.replace("last_call_timeout=1,", "last_call_timeout=60,"))
        super().__init__(cluster, folder, *SETTINGS, *options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def steps(self, since, world_size=None):
        """The updates made after ``since`` by ranks that have begun after it."""
        born = {(b["host"], b["pid"]) for b in self.lines("begins") if b["time"] > since}
        steps = [s for s in self.lines("step") if (s["host"], s["pid"]) in born]
        return [s for s in steps if world_size in (None, s["world_size"])]

    def trains(self, since, world_size):
        """Wait until so many ranks that began after ``since`` have made an update; its lines."""

        def all_of_them():
            steps = self.steps(since, world_size)
            return steps if len({s["rank"] for s in steps}) == world_size else None

        return self.until(all_of_them)

    def goes_on(self, harm, world_size):
        """Do ``harm()``; seconds until training went on with so many ranks, and steps repeated."""
        start = time.time()
        harm()
        again = self.trains(start, world_size)[0]
        life = max(line["time"] for line in self.lines("begins") if line["time"] < start)
        before = [s for s in self.lines("step") if life < s["time"] < again["time"]]
        reached = max(s["step"] for s in before) + 1
        return {
            "seconds": again["time"] - start,
            "repeated": reached - again["step"],
            "ranks": world_size,
        }

    def lives(self):
        """When each process made its first and its last update, in seconds since the first one."""
        first, last = {}, {}
        for line in self.lines("step"):
            who = line["host"], line["pid"]
            first.setdefault(who, line)
            last[who] = line
        start = min(line["time"] for line in first.values())
        return [
            {
                "host": line["host"],
                "rank": line["rank"],
                "ranks": line["world_size"],
                "from": line["time"] - start,
                "to": last[who]["time"] - start,
            }
            for who, line in first.items()
        ]

    def after(self, moment):
        """When the first update after ``moment`` was made."""
        return min(line["time"] for line in self.lines("step") if line["time"] > moment)

    def ended(self):
        """Wait for the end, which is a good one."""
        status = self.process.wait(LIMIT)
        assert status == 0, self.words()

    def left(self, seconds=10):
        """What is left of it, given so many seconds to go."""
        deadline = time.monotonic() + seconds
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _left(self):
        parts = [f for f in self.checkpoints.iterdir() if f.suffix != ".safetensors"]
        own = [p for p, words in commands().items() if str(self.checkpoints) in words]
        return self.hosts.left() + parts + own


def undisturbed(folder, processes, *options):
    """The same training by ``processes`` ranks that nothing happens to; its weights."""
    checkpoints = folder / f"undisturbed-{processes}"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={processes}",
            str(PAGE / "train_elastic.py"),
            "--checkpoints",
            str(checkpoints),
            *SETTINGS,
            *options,
        ],
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
    )
    return weights(checkpoints)


def weights(checkpoints):
    """All tensors of the newest checkpoint but the random states, as one vector."""
    state = safetensors.torch.load_file(max(checkpoints.glob("step-*.safetensors")))
    kept = sorted(name for name in state if not name.startswith("/random"))
    return torch.cat([state[name].flatten().double() for name in kept])


def seen(lines):
    """{epoch: images in the order of steps} of what counted: each step's last execution."""
    last = defaultdict(list)
    for line in reversed([line for line in lines if line["what"] == "step"]):
        steps = last[line["step"]]
        if len(steps) < (steps or [line])[0]["world_size"]:
            steps.append(line)
    epochs = defaultdict(list)
    for steps in last.values():
        assert {s["rank"] for s in steps} == set(range(steps[0]["world_size"]))
        for step in steps:
            epochs[step["epoch"]] += step["images"]
    return epochs
