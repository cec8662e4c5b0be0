"""What scripts for GPUs call, each in a function, run under ``watch.cuda``; prints what failed."""

import importlib
import io
import os
import sys
import traceback
from types import SimpleNamespace

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F

from d2lmgpu.watch.cuda import on_cpu

DEVICES = 2
REPORTS = []
CALLS = []


def call(function):
    CALLS.append(function)
    return function


@call
def factories():
    X = torch.randn(2, 3, device="cuda:1") + torch.zeros(2, 3, device=torch.device("cuda"))
    X = X + torch.ones_like(X, device="cuda") + torch.arange(3, device=0)
    X = X + X.new_zeros(3, device="cuda") + torch.tensor([1.0], device="cuda", pin_memory=True)
    assert X.shape == (2, 3) and torch.fft.fftfreq(4, device="cuda").shape == (4,)


@call
def a_profiler_of_kernels():
    both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for activities in (both, both[1:], None):
        with torch.profiler.profile(activities=activities) as of_the_cpu:
            torch.ones(3, device="cuda") + 1
        assert "aten::add" in of_the_cpu.key_averages().table()
        assert not any(event.device_type.name == "CUDA" for event in of_the_cpu.events())


@call
def moved_by_name_number_and_device():
    X = torch.ones(3)
    places = ["cuda", "cuda:1", 0, torch.device("cuda", 1)]
    assert all(torch.equal(X.to(place), X) for place in places)
    assert X.to("cuda", torch.float64, non_blocking=True).dtype == torch.float64
    assert X.to(torch.float16).dtype == torch.float16 and X.to(torch.ones(1).double()).sum() == 3
    assert X.cuda(1, non_blocking=True).sum() == X.pin_memory().cuda().sum() == 3
    assert X.type("torch.cuda.DoubleTensor").dtype == torch.float64


@call
def networks():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).cuda().to(0).to(device="cuda:1")
    assert net.to("cuda", torch.float64)[0].weight.dtype == torch.float64
    with torch.device("meta"):
        empty = nn.Linear(3, 2)
    assert empty.to_empty(device="cuda").weight.shape == (2, 3)
    assert net.double()(torch.ones(4, 3).double().cuda()).shape == (4, 2)


@call
def one_process_for_all_gpus():
    net = nn.DataParallel(nn.Linear(3, 2), device_ids=[0, 1])
    net(torch.ones(4, 3)).sum().backward()
    assert net.module.weight.grad.sum() == 24 and "module.weight" in net.state_dict()


@call
def checkpoints():
    file = io.BytesIO()
    torch.save({"w": torch.ones(2)}, file)
    places = [None, "cuda:1", torch.device("cuda"), {"cuda:0": "cuda:1"}, lambda s, _: s.cuda(0)]
    for place in places:
        file.seek(0)
        assert torch.load(file, map_location=place)["w"].sum() == 2


@call
def what_the_gpu_says():
    cuda = torch.cuda
    assert cuda.is_available() and cuda.device_count() == DEVICES
    cuda.set_device(1)
    cuda.set_device(-1)  # the default of --local_rank
    assert cuda.current_device() == 1
    cuda.set_device("cuda:0")
    assert cuda.current_device() == 0
    assert cuda.get_device_name() and cuda.get_device_properties(0).total_memory > 0
    cuda.manual_seed_all(0), cuda.synchronize(), cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 0 and cuda.mem_get_info()[0] > 0
    cuda.set_rng_state(cuda.get_rng_state())
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == DEVICES
    assert torch.accelerator.current_accelerator().type == "cuda"


@call
def streams_events_and_ranges():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(1):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        torch.ones(3).record_stream(torch.cuda.current_stream())
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.range_pop()


@call
def mixed_precision_by_both_names():
    net, scaler = nn.Linear(4, 1).cuda(), torch.amp.GradScaler("cuda", init_scale=8.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)  # 0.1 ends at a loss of 0 in one update
    for autocast in (torch.autocast("cuda"), torch.cuda.amp.autocast(), torch.autocast("cuda:1")):
        before = net.weight.detach().clone()
        with autocast:
            Y = net(torch.ones(2, 4, device="cuda"))
            assert Y.dtype == torch.float16
            loss = F.mse_loss(Y.float(), torch.zeros(2, 1))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert not torch.equal(before, net.weight)
    assert torch.cuda.amp.GradScaler(enabled=False).scale(loss) is loss


@call
def generators_and_random_numbers():
    draw = [torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(1))]
    draw += [torch.rand(3, generator=torch.Generator(device="cuda:1").manual_seed(1))]
    assert torch.equal(*draw) and isinstance(torch.Generator(), torch.Generator)
    assert (torch.Generator | None) is not None


@call
def loaders():
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.ones(8, 2))
    loader = DataLoader(data, 4, pin_memory=True, num_workers=1, pin_memory_device="cuda")
    assert sum(X.cuda(non_blocking=True).sum() for (X,) in loader) == 16


@call
def a_default_device():
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).sum() == 2
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert nn.Linear(2, 2)(torch.ones(1, 2)).shape == (1, 2)
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    assert torch.cuda.FloatTensor is torch.FloatTensor


@call
def scripted():
    @torch.jit.script
    def add(X):
        return X + torch.zeros_like(X) + torch.ones([2], device="cpu")

    assert add(torch.ones(2)).sum() == 4
    importlib.import_module("torch.distributed.optim")  # it scripts classes of its own


@call
def a_group_by_nccl():
    os.environ |= {"MASTER_ADDR": "10.1.2.3"}  # a node of somebody's cluster
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    dist.barrier(device_ids=[0])
    group = dist.new_group([0], backend="nccl")
    X = torch.ones(2, device="cuda")
    dist.all_reduce(X, group=group)
    assert dist.is_nccl_available() and X.sum() == 2
    assert dist.init_device_mesh("cuda", (1,)).device_type == "cpu"


@call
def ddp_and_sharded():
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    net = DistributedDataParallel(net.cuda(), device_ids=[0], output_device=0)
    net(torch.ones(4, 2, device="cuda")).sum().backward()
    compiled = torch.compile(net, backend="eager")
    compiled(torch.ones(4, 2, device="cuda")).sum().backward()
    sharded = fully_shard(nn.Linear(2, 2).cuda())
    sharded(torch.ones(1, 2)).sum().backward()
    dist.destroy_process_group()


@call
def what_the_compiler_asks():
    compiler = importlib.import_module("torch._inductor.codecache")
    assert compiler.CacheBase.get_system()["hash"]
    interface = importlib.import_module("torch._dynamo.device_interface")
    assert not interface.get_interface_for_device("cuda").is_available()
    assert torch.cuda.get_device_properties(0).name and torch.cuda.is_available()


def main():
    lines = SimpleNamespace(caller=lambda *_: "train.py:7")
    watch = SimpleNamespace(torch=torch, lines=lines, at_end=REPORTS.append)
    on_cpu(watch, DEVICES)
    assert REPORTS[0]() == {"cuda": None}
    for function in CALLS:
        try:
            function()
        except Exception:
            print(f"{function.__name__} failed")
            traceback.print_exc()
    print("asked for at", REPORTS[0]()["cuda"], file=sys.stderr)


if __name__ == "__main__":
    main()
