"""Each cause in a sentence, and what to change."""

MENDS = {
    "loader": "Do that work once before training, or give the DataLoader num_workers=1 or more.",
    "python": "Do that work before training or in a process: Python threads share one lock.",
    "sync": "Do it every hundredth step, or put all numbers in one tensor and exchange that.",
    "small-batch": "Give each device more rows: raise the batch size and with it lr.",
    "host-bound": "Do the same with fewer, larger operations: whole tensors in place of a loop.",
    "no-overlap": "Wrap the net in DistributedDataParallel; when gradients are accumulated, use "
    "no_sync() in all but the last backward pass.",
    "slow-exchange": "Exchange less: sparse gradients or a smaller table, no broadcast in a step "
    "(DDP keeps the weights equal), a larger batch.",
    "straggler": "Give every rank equal work: deal rows out in turn or shuffle them, and batch "
    "texts of like length.",
    "threads": "Give each process its share of the cores: OMP_NUM_THREADS=1 or "
    "torch.set_num_threads(1) for a process a core.",
    "data-parallel": "Start one process a device with torchrun, wrap the net in "
    "DistributedDataParallel, and give the loader a DistributedSampler.",
    "rank0-work": "Do it less often, share it among the ranks, or let a thread or process do it.",
    "whole-data": "Give the DataLoader a DistributedSampler, or take X[rank::world] of the data.",
    "shared-core": "Pin each rank to a core of its own, or leave the choice to the system.",
    "slow-dtype": "Use float32: .float() on data that comes from NumPy, and no set_default_dtype.",
}


def _whole_data(d):
    if d["how"] == "same rows":
        return "All ranks work on the same rows."
    return f"Every rank goes through all {d['rows']:,} rows of the data set, not its part."


def _data_parallel(d):
    if d["how"] == "DataParallel":
        return "nn.DataParallel drives all devices from one process; on CPUs it uses one device."
    if d["how"] == "one process":
        return "The script trains in one process, and no second device has any of the work."
    return "The processes exchange no gradients: each trains a network of its own."


def _slow_exchange(d):
    size = f"{d['bytes'] / 1e6:.1f} MB"
    if d["kind"] == "gradients":
        return f"Each step exchanges {size} of gradients, and the ranks wait for it."
    return f"Each step sends {size} by {d['kind']}, beside the gradients."


def _no_overlap(d):
    if d["how"] == "by hand":
        return f"Gradients are exchanged after the backward pass, in {d['calls']:.0f} calls a step."
    return f"Gradients are exchanged {d['often']:.0f} times for one update."


def _straggler(d):
    rows = " and ".join(f"{n:,.0f}" for n in d["rows"])
    return (
        f"Rank {d['rank']} has {d['times']:.1f} times the work of the fastest rank "
        f"(rows a step: {rows})."
    )


def _by(d):
    return f" ({d['by']})" if d["by"] else ""


SENTENCES = {
    "loader": lambda d: f"The ranks wait for their data ({d['workers']} workers load it).",
    "python": lambda d: (
        "Other Python threads compute beside the step and hold Python's lock."
        if d["how"] == "beside"
        else "The devices' threads wait for Python's lock."
    ),
    "sync": lambda d: (
        f"Each step has {d['calls']:.0f} small collectives ({d['kind']}), "
        "and all ranks wait in each."
    ),
    "small-batch": lambda d: (
        f"A rank has {d['rows']:.0f} rows a pass: too few for what a step costs anyway."
    ),
    "host-bound": lambda d: (
        f"A step issues {d['operations']:,.0f} operations of "
        f"{d['microseconds']:.0f} µs each: mostly the issuing takes time."
    ),
    "no-overlap": _no_overlap,
    "slow-exchange": _slow_exchange,
    "straggler": _straggler,
    "threads": lambda d: (
        f"{d['k']} processes of {d['threads']} threads share {d['cores']} cores{_by(d)}."
    ),
    "data-parallel": _data_parallel,
    "rank0-work": lambda d: "Rank 0 works beside the training while the others wait.",
    "whole-data": _whole_data,
    "shared-core": lambda d: f"{d['k']} ranks may use {d['cores']} core only{_by(d)}.",
    "slow-dtype": lambda d: (
        f"{d['doubles']:.0%} of the operations are in float64."
        if "doubles" in d
        else f"A step converts types {d['casts']:.0f} times."
    ),
}


def sentence(cause) -> str:
    """What is wrong, in a sentence."""
    return SENTENCES[cause.name](cause.detail)


def mend(cause) -> str:
    """What to change."""
    return MENDS[cause.name]
