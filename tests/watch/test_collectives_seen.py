"""Every collective is seen once, by its name, with its bytes and the reader's line."""

import json
import subprocess
import sys

import pytest

from d2lmgpu.watch.run import run

OBSERVER = """
from contextlib import contextmanager
from d2lmgpu.watch.collectives import watch_collectives

def observe(watch):
    seen = []

    @contextmanager
    def around(one):
        if not one.waiting:
            seen.append([one.kind, one.bytes, one.where, one.by_hand, one.carries])
        yield

    watch_collectives(watch, around)
    watch.at_end(lambda: {"seen": seen})
"""
HEAD = """
import torch
from torch import distributed as dist, nn
from torch.distributed import _functional_collectives as functional

dist.init_process_group("gloo")
rank, t = dist.get_rank(), torch.ones(4)
"""
CALLS = {  # a line of the reader's -> (kind, bytes) of each collective that rank 0 sees
    "dist.all_reduce(t)": [("all_reduce", 16)],
    "dist.all_reduce(t, async_op=True).wait()": [("all_reduce", 16)],
    "dist.broadcast(t, 0)": [("broadcast", 16)],
    "dist.all_gather([t.clone(), t.clone()], t)": [("all_gather", 32)],
    "dist.all_gather_into_tensor(torch.ones(8), t)": [("all_gather_into_tensor", 32)],
    "dist.reduce_scatter_tensor(torch.ones(2), t)": [("reduce_scatter_tensor", 16)],
    "dist.all_to_all_single(torch.ones(4), t)": [("all_to_all_single", 16)],
    "(dist.isend if rank == 0 else dist.irecv)(t, 1 - rank).wait()": [("isend", 16)],
    "[work.wait() for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, t, 1 - rank),"
    " dist.P2POp(dist.irecv, torch.ones(4), 1 - rank)])]": [("batch_isend_irecv", 16)] * 2,
    "functional.all_reduce(t, 'sum', dist.group.WORLD) + 1": [("all_reduce", 16)],
}
NETS = {  # of PyTorch's own -> the kinds that carry gradients in a backward pass
    "net = nn.parallel.DistributedDataParallel(nn.Linear(3, 3))": "allreduce",
    "from torch.distributed.fsdp import fully_shard; "
    "net = fully_shard(nn.Linear(3, 3))": "reduce_scatter_base",
}


@pytest.fixture
def reports(tmp_path, tmp_path_factory, monkeypatch):
    """What both ranks report of a script of these lines."""
    ours = tmp_path_factory.mktemp("observer")
    (ours / "looks.py").write_text(OBSERVER)
    monkeypatch.setenv("PYTHONPATH", str(ours))

    def watched(lines):
        script = tmp_path / "train.py"
        script.write_text("\n".join(lines))
        watched = run(script, [], 2, "looks")
        assert not any("error" in report for report in watched.reports), watched.explanation
        return json.loads(json.dumps(watched.reports))

    return watched


@pytest.fixture
def seen(reports):
    """What rank 0 saw of the lines below the head."""
    return lambda lines: reports([HEAD, *lines])[0]["seen"]


def test_what_a_script_calls_is_seen_by_its_name_and_line(seen):
    all_calls, first = seen(CALLS), HEAD.count("\n") + 2
    expected = [
        [kind, size, f"train.py:{first + i}", True, True]
        for i, calls in enumerate(CALLS.values())
        for kind, size in calls
    ]
    assert all_calls == expected


def test_objects_and_barriers_carry_no_tensors_of_the_training(seen):
    lines = ["dist.barrier()", "dist.all_gather_object([None, None], {'loss': 1.0})"]
    calls = seen(lines)
    assert {kind for kind, *_ in calls} == {"barrier", "all_gather_object"}
    assert not any(carries for *_, carries in calls)


def test_what_pytorch_issues_by_itself_has_the_reader_s_line(seen):
    lines = [line for net in NETS for line in (net, "net(torch.ones(2, 3)).sum().backward()")]
    calls = [(kind, where) for kind, _, where, by_hand, _ in seen(lines) if not by_hand]
    first = HEAD.count("\n") + 2
    for i, kind in enumerate(NETS.values()):
        assert (kind, f"train.py:{first + 2 * i + 1}") in calls


def test_a_group_that_a_mesh_makes_is_noted(reports):
    mesh = "torch.distributed.device_mesh.init_device_mesh('cpu', (2,))"
    both = reports(["import torch", mesh])
    assert [report["distributed"] for report in both] == [True, True]


COMPILED = """
import torch
from torch import distributed as dist, nn

from d2lmgpu.watch.collectives import listen

def begun(operator, arguments, waiting):
    calls.append(torch.compiler.is_compiling())

calls = []
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
listen(torch, begun)

net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
net = torch.compile(net, backend="eager")
for step in range(2):
    net(torch.ones(4, 2)).sum().backward()
print(set(calls))
"""


def test_what_sees_them_is_not_compiled_with_the_network_that_sends():
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.stdout == "{False}\n", done.stderr
