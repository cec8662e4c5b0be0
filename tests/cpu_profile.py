"""PyTorch's own account of memory on a CPU."""

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path

import torch

from d2lmgpu.torch.memory.follow import PRECISIONS
from d2lmgpu.torch.memory.on_gpu import on_gpu


def highest_total(profiler):
    """The most bytes that its allocator had given out, above what it had before ``profiler``."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    noted = [event for event in events if event["name"] == "[memory]"]
    noted = [event["args"] for event in sorted(noted, key=lambda event: event["ts"])]
    before = noted[0]["Total Allocated"] - noted[0]["Bytes"]
    return max(event["Total Allocated"] for event in noted) - before


def measured(net, batch, loss, optimizer, batch_size, precision):
    """The highest total that PyTorch's profiler notes in two steps, in bytes; as ``fits`` is asked.

    Without oneDNN, which takes more for some convolutions on some CPUs (of ResNet-18 16 % on an
    AMD EPYC); 16 bits would be slow without it.
    """
    computes, _ = PRECISIONS[precision]
    plain = torch.backends.mkldnn.flags(enabled=bool(computes))
    with torch.profiler.profile(profile_memory=True) as profiler, on_gpu(), plain:
        net = net()
        trainer = optimizer([p for p in net.parameters() if p.requires_grad])
        for _ in range(2):
            trainer.zero_grad()
            inputs = batch(batch_size)
            with torch.autocast("cpu", computes) if computes else nullcontext():
                value = loss(net, *inputs)
            value.backward()
            del value
            trainer.step()
    return highest_total(profiler)
