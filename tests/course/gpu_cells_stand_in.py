"""What stands for GPUs when a cell that takes some runs in a test.

`STAND_IN` is imported by every process as ``sitecustomize``: PyTorch sees two GPUs, which are CPU
cores, and the memory that it is asked about is counted by storages. `SAYS` has, by page, what only
a GPU could say, in the format of public traces and logs, put in between the page's definitions and
the cell; `WRONG` what the cell must refuse, as a replacement in that or in the cell itself.
"""

STAND_IN = '''
from types import SimpleNamespace

from d2lmgpu.watch.import_hook import once_imported

following, limit = [], 1.0


def reset(*_):
    """Counts from now on; no room is left after a limit was set."""
    import torch

    from d2lmgpu.torch.memory.storages import FollowStorages

    class Following(FollowStorages):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._local_scalar_dense.default:  # here numbers are there
                return func(*args)
            return super().__torch_dispatch__(func, types, args, kwargs)

    if limit < 1:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    while following:
        following.pop().__exit__(None, None, None)
    following.append(Following())
    following[0].__enter__()


def peak(*_):
    return max(following[0].timeline.totals())


def set_limit(fraction, *_):
    global limit
    limit = fraction


def stand_in(torch):
    from d2lmgpu.watch.cuda import on_cpu

    lines = SimpleNamespace(caller=lambda *_: None, where=lambda *_: None)
    group = SimpleNamespace(world=2)
    on_cpu(SimpleNamespace(torch=torch, lines=lines, group=group, at_end=lambda _: None), 2)
    torch.cuda.reset_peak_memory_stats = reset
    torch.cuda.max_memory_allocated = torch.cuda.max_memory_reserved = peak
    torch.cuda.set_per_process_memory_fraction = set_limit


once_imported("torch", stand_in)
'''

# Sizes in the cells with which a CPU is soon done.
SMALLER = {
    "concise/torchrun.ipynb": {"6000, 1000": "1200, 500"},
    "memory/fits.ipynb": {"1024, 16, 4096": "128, 4, 512", "256, 1024": "128, 128"},
    "memory/sharding.ipynb": {"WIDE = 4096, 8": "WIDE = 512, 4"},
    "diagnosis/traces.ipynb": {"4096": "64"},
    "diagnosis/hangs.ipynb": {"seconds=10": "seconds=2"},
    "diagnosis/how-fast.ipynb": {"8192": "64"},
}

SAYS = {
    "diagnosis/profile.ipynb": """
class DataLoader(DataLoader):
    pinned = False

    def __init__(self, *args, pin_memory, **kwargs):
        DataLoader.pinned = pin_memory
        super().__init__(*args, **kwargs)

class profile(profile):
    def export_chrome_trace(self, path):
        kind = "Pinned" if DataLoader.pinned else "Pageable"
        event = {"ph": "X", "cat": "gpu_memcpy", "name": f"Memcpy HtoD ({kind} -> Device)"}
        Path(path).write_text(json.dumps({"traceEvents": 32 * [event]}))
""",
    "diagnosis/traces.ipynb": """
class profile(profile):
    def export_chrome_trace(self, path):
        spans = (0, 20, "ampere_sgemm_nn", 7), (15, 25, "ncclDevKernel_AllReduce_Sum_f32", 20)
        events = [on_gpu(*span) for span in spans]
        Path(path).write_text(json.dumps({"traceEvents": events}))

def on_gpu(start, end, name, stream):
    return {"ph": "X", "cat": "kernel", "name": name, "ts": 1000 * start,
            "dur": 1000 * (end - start), "args": {"device": 0, "stream": stream}}
""",
    "diagnosis/how-fast.ipynb": """
clock = iter((0, 8, 0, 4, 0, 2))       # seconds: TF32 takes half as long, bf16 a quarter
perf_counter = clock.__next__
""",
    "diagnosis/hangs.ipynb": """
def run_under_nccl(command, real=subprocess.run, **options):
    done = real(command, **options)
    assert "timed out" in done.stderr.lower(), done.stderr        # as gloo calls it
    done.stderr += (
        "[rank0]:[E321 02:07:08.408 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=10000) ran for 10010 milliseconds before timing out.")
    entries = [{"record_id": i, "profiling_name": "nccl:all_reduce", "input_sizes": [[5]],
                "state": "completed"} for i in range(3)]
    entries.append(entries[0] | {"record_id": 3, "input_sizes": [[]], "state": "scheduled"})
    rank_0 = Path(options["env"]["TORCH_FR_DUMP_TEMP_FILE"] + "0")
    rank_0.write_bytes(pickle.dumps({"entries": entries}))
    return done

subprocess = SimpleNamespace(run=run_under_nccl)
""",
    "memory/out-of-memory.ipynb": """
def dump(path):
    Path(path).write_bytes(pickle.dumps(snapshot_of(script)))

torch.cuda.memory._record_memory_history = lambda *_, **__: None
torch.cuda.memory._dump_snapshot = dump
""",
    "memory/sharding.ipynb": """
KERNELS = {"c10d::allreduce_": "AllReduce_Sum_f32", "c10d::_allgather_base_": "AllGather",
           "c10d::_reduce_scatter_base_": "ReduceScatter_Sum_f32"}

class profile(profile):
    def __init__(self, **_):
        super().__init__(activities=[ProfilerActivity.CPU])

    def key_averages(self):
        for event in super().key_averages():
            if event.key in KERNELS:
                event.key = f"ncclDevKernel_{KERNELS[event.key]}_RING_LL"
                yield event
""",
}

WRONG = {
    "concise/accumulation.ipynb": ("scaler.unscale_(optimizer) ", "pass"),
    "concise/torchrun.ipynb": ('"--epochs=2"', '"--epochs=3"'),
    "diagnosis/hangs.ipynb": ("[Rank 0]", "[Rank 1]"),
    "diagnosis/how-fast.ipynb": ("0, 4, 0", "0, 9, 0"),
    "diagnosis/profile.ipynb": ('"Pinned" if', '"Pageable" if'),
    "diagnosis/this-machine.ipynb": (
        "print(*links",
        "links.Links.bus_bandwidth = lambda *_: 1.0\n    print(*links",
    ),
    "diagnosis/traces.ipynb": ("(15, 25,", "(5, 15,"),  # hidden, to the last moment
    "memory/fits.ipynb": ("texts(batch_size)", "texts(2 * batch_size)"),
    "memory/out-of-memory.ipynb": ("snapshot_of(script)))", "snapshot_of('\\n' + script)))"),
    "memory/sharding.ipynb": ('"ReduceScatter_Sum', '"AllReduce_Sum'),
}
