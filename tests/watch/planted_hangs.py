"""Scripts whose ranks wait for each other without end; "# rank 0" is where rank 0 then is."""

HEAD = """
import os, sys, time, torch
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.manual_seed(0)
"""
TRAINS = """
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
net = DDP(nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def step():
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()  # LOSS
    opt.step()
"""
DDP_LINE = "net(torch.randn(8, 4)).square().mean().backward()  # LOSS"

# name -> (source, the rule that names it)
SCRIPTS = {
    "barrier under an if": (
        TRAINS
        + """
for _ in range(3):
    step()
if rank == 0:
    dist.barrier()  # rank 0
dist.all_reduce(torch.ones(3))  # rank 1
""",
        "unlike",
    ),
    "all_reduce under an if": (
        TRAINS.replace("# LOSS", "# rank 1")
        + """
for i in range(5):
    step()
    if rank == 0 and i == 3:
        dist.all_reduce(torch.ones(1))  # rank 0
""",
        "unlike",
    ),
    "more steps": (
        TRAINS.replace("# LOSS", "# rank 1")
        + """
for _ in range(3 if rank == 0 else 5):
    step()
""",
        "left",
    ),
    "unequal loaders": (
        TRAINS.replace("# LOSS", "# rank 1")
        + """
rows = torch.utils.data.TensorDataset(torch.randn(40 + 8 * rank, 4))
for X, in torch.utils.data.DataLoader(rows, batch_size=8):
    step()
dist.barrier()  # rank 0
dist.destroy_process_group()
""",
        "unlike",
    ),
    "early stop": (
        TRAINS.replace("# LOSS", "# rank 0")
        + """
best = 5 - 2 * rank
for epoch in range(9):
    step()
    if epoch >= best:
        break
dist.all_reduce(torch.ones(5))  # rank 1
""",
        "unlike",
    ),
    "other order": (
        TRAINS
        + """
def losses():
    dist.all_reduce(torch.ones(2))  # rank 0
def rates():
    dist.broadcast(torch.ones(2), 0)  # rank 1
for i in range(3):
    step()
    for told in (losses, rates) if rank == 0 or i < 2 else (rates, losses):
        told()
""",
        "unlike",
    ),
    "other shape": (
        TRAINS
        + """
step()
dist.all_reduce(torch.ones(4 + 2 * rank))  # rank 0 # rank 1
""",
        "unlike",
    ),
    "one rank raises": (
        TRAINS.replace("# LOSS", "# rank 0")
        + """
for i in range(5):
    if rank == 1 and i == 3:
        raise ValueError("a bad row")  # rank 1
    step()
""",
        "raised",
    ),
    "a swallowed exception": (
        TRAINS.replace("# LOSS", "# rank 0")
        + """
for i in range(6):
    try:
        if rank == 1 and i == 2:
            raise ValueError("a bad row")
        step()
    except ValueError:
        continue
""",
        "left",
    ),
    "if world > 1, a class, cuda": (
        """
class Trainer:
    def __init__(self):
        self.world = int(os.environ.get("WORLD_SIZE", 1))
        if self.world > 1:
            dist.init_process_group("nccl")
        self.rank = int(os.environ.get("RANK", 0))
        torch.cuda.set_device(self.rank)
        self.net = nn.Linear(4, 1).cuda()
        self.opt = torch.optim.AdamW(self.net.parameters())

    def exchange(self):
        for p in self.net.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)  # rank 0

    def fit(self, steps=4):
        for i in range(steps):
            self.net(torch.randn(8, 4).cuda()).square().mean().backward()
            if self.world > 1 and not (self.rank == 1 and i == 2):
                self.exchange()
            self.opt.step()
            self.opt.zero_grad()
        if self.world > 1:
            dist.barrier()  # rank 1

Trainer().fit()
""",
        "unlike",
    ),
    "mp.spawn": (
        """
def train(rank, world):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=sys.argv[1])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for i in range(6 - rank):
        opt.zero_grad()
        net(torch.randn(8, 4)).sum().backward()  # rank 0
        opt.step()
    if rank == 1:
        dist.barrier()  # rank 1

if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(2,), nprocs=2)
""",
        "unlike",
    ),
    "recv without send": (
        TRAINS
        + """
step()
if rank == 1:
    dist.recv(torch.ones(2), src=0)  # rank 1
dist.barrier()  # rank 0
""",
        "message",
    ),
    "broadcast_object": (
        TRAINS
        + """
step()
best = [1.0] if rank == 0 else [None]
if rank == 0:
    dist.broadcast_object_list(best, src=0)  # rank 0
else:
    dist.barrier()  # rank 1
""",
        "unlike",
    ),
    "two groups": (
        TRAINS
        + """
data, model = dist.new_group(group_desc="data"), dist.new_group(group_desc="model")
for i in range(3):
    step()
    for group in (data, model) if rank == 0 or i < 2 else (model, data):
        dist.all_reduce(torch.ones(2), group=group)  # rank 0 # rank 1
""",
        "groups",
    ),
    "a loader that hangs": (
        TRAINS.replace("# LOSS", "# rank 0")
        + """
import threading
lock = threading.Lock()
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, row):
        with lock:  # rank 1
            return row
step()
if rank == 1:
    lock.acquire()
for row in torch.utils.data.DataLoader(Rows()):
    step()
dist.barrier()
""",
        "stuck",
    ),
    "a lock taken twice": (
        TRAINS.replace("# LOSS", "# rank 0")
        + """
import threading
lock = threading.Lock()
for i in range(4):
    lock.acquire()  # rank 1
    step()
    if rank == 0 or i != 2:
        lock.release()
""",
        "stuck",
    ),
}
SLOW = {
    "sleeps": "time.sleep(6)",
    "computes": "until = time.time() + 6\n        while time.time() < until:\n            pass",
    "loads": "next(iter(torch.utils.data.DataLoader(Slow())))",
}
SLOW_SCRIPT = (
    TRAINS
    + """
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, row):
        time.sleep(6)
        return row

for i in range(4):
    step()
    if rank == 0 and i == 2:
        {deed}
"""
)
