"""What the watch of ``explain`` costs the steps that it measures.

    python -m benchmarks.watch

A script trains LeNet with DDP in two processes, and rank 0 says how long its own steps take: that
of the fastest tenth which takes longest, as what else the machine does is not the watch's. It runs
by itself, with torchrun, and under the watch, in turns.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from d2lmgpu.records import store
from d2lmgpu.watch.explain.pair import LIMITS, OBSERVER
from d2lmgpu.watch.run import run

MOST = 1.10  # times as long
PAIRS = 9
SCRIPT = """
import time

import torch
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
net = DistributedDataParallel(nn.Sequential(
    nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
    nn.AvgPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10),
))
loss, trainer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.rand(8192, 1, 28, 28), torch.randint(10, (8192,)))
loader = torch.utils.data.DataLoader(data, batch_size=128)
seconds = []
for X, y in loader:
    begin = time.perf_counter()
    trainer.zero_grad()
    loss(net(X), y).backward()
    trainer.step()
    seconds.append(time.perf_counter() - begin)
    if len(seconds) == 50 and dist.get_rank() == 0:
        print("STEP", sorted(seconds[20:])[len(seconds[20:]) // 10], flush=True)
"""


def step(text) -> float:
    """Seconds, from what the script has printed."""
    return float(re.search(r"STEP (\S+)", text)[1])


def by_itself(script) -> float:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*command, script], check=True, capture_output=True, text=True)
    return step(done.stdout)


def watched(script) -> float:
    return step(run(script, [], 2, OBSERVER, limits=LIMITS, unprotected=True).output)


def main() -> int:
    """Whether a watched step takes too long; 0 if it does not."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(SCRIPT)
        pairs = [(by_itself(script), watched(script)) for _ in range(PAIRS)]
    ratios = [watch / alone for alone, watch in pairs]
    record = store.provenance("python -m benchmarks.watch") | {
        "seconds a step": {"by itself": [a for a, _ in pairs], "watched": [w for _, w in pairs]},
        "times as long": ratios,
        "median": median(ratios),
    }
    alone = 1000 * median(alone for alone, _ in pairs)
    print(
        f"a step of {alone:.1f} ms takes {median(ratios):.2f} times as long under the watch "
        f"(at most {MOST:.2f}), of {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    )
    print("Written to", store.write("records", "watch", record))
    return int(median(ratios) > MOST)


if __name__ == "__main__":
    sys.exit(main())
