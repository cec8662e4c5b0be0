"""Causes that are facts: how the script divides its work, and among which cores and threads.

Each rule is given the run with several devices and that with one (None where there is none).
"""

from collections.abc import Iterator

from d2lmgpu.process.step_parts import BACKWARD, FORWARDS
from d2lmgpu.watch.explain.causes import Cause, Kind
from d2lmgpu.watch.explain.parts import CORES, THREADS

FEW_BYTES = 0.01  # of the gradients' a step: who sends less sends no gradients

DATA_PARALLEL = Kind(
    "data-parallel",
    "Start one process a device with torchrun, wrap the net in DistributedDataParallel, and give "
    "the loader a DistributedSampler.",
)
WHOLE_DATA = Kind(
    "whole-data",
    "Give the DataLoader a DistributedSampler, or take X[rank::world] of the data.",
)
SHARED_CORE = Kind(
    "shared-core",
    "Pin each rank to a core of its own, or leave the choice to the system.",
)
TOO_MANY_THREADS = Kind(
    "threads",
    "Give each process its share of the cores: OMP_NUM_THREADS=1 or torch.set_num_threads(1) for a "
    "process a core.",
)


def _exchanges(run):
    """Whether gradients or weights travel, whoever sends them: more than a loss or a count."""
    report = run.ranks[0]
    least = FEW_BYTES * report["gradient_bytes"] * report["measured"]
    return report["ddp"] or report["exchanged"] > least


def data_parallel(run, single) -> Iterator[Cause]:
    report = run.ranks[0]  # alone, with all GPUs to itself, a script may do otherwise
    if report["data_parallel"]:
        sentence = (
            "nn.DataParallel drives all devices from one process; on CPUs it uses one device."
        )
        yield Cause(DATA_PARALLEL, 0.5, report["data_parallel"], sentence)
    elif run.k == 1 and not report["distributed"]:
        sentence = "The script trains in one process, and no second device has any of the work."
        yield Cause(DATA_PARALLEL, 0.5, run.line(BACKWARD), sentence)
    elif run.k > 1 and not _exchanges(run):
        sentence = "The processes exchange no gradients: each trains a network of its own."
        yield Cause(DATA_PARALLEL, 1 - 1 / run.k, run.line(BACKWARD), sentence)


def whole_data(run, single) -> Iterator[Cause]:
    if run.k == 1 or single is None:
        return
    prints = [rank["prints"] for rank in run.ranks]
    alike = [len(set(of_ranks)) == 1 for of_ranks in zip(*prints)]
    undivided = run.rows_like(single) / run.k > 0.9 * single.rows
    if undivided and alike and sum(alike) > 0.8 * len(alike):
        where = run.line(*FORWARDS) or run.line(BACKWARD)
        yield Cause(WHOLE_DATA, 1 - 1 / run.k, where, "All ranks work on the same rows.")
        return
    before = {loader["where"]: loader for loader in single.ranks[0]["loaders"]}
    used = [loader for loader in run.ranks[0]["loaders"] if loader["epochs"]]
    for loader in sorted(used, key=lambda loader: -(loader["of"] or 0))[:1]:
        alone = before.get(loader["where"])
        all_used = run.rows / run.k > 0.9 * loader["batch"] if loader["batch"] else undivided
        if all_used and alone and loader["mine"] and loader["mine"] == alone["mine"]:
            rows = f"all {loader['mine']:,} rows of the data set"
            sentence = f"Every rank goes through {rows}, not its part."
            yield Cause(WHOLE_DATA, 1 - 1 / run.k, loader["where"], sentence)


def shared_core(run, single) -> Iterator[Cause]:
    cores = [rank["cores"] for rank in run.ranks]
    if run.k > 1 and all(cores) and len(set().union(*cores)) < run.k:
        number = len(set().union(*cores))
        where, by = _set_by(run, "cores", CORES)
        sentence = f"{run.k} ranks may use {number} core only{by}."
        yield Cause(SHARED_CORE, 1 - number / run.k, where, sentence)


def too_many_threads(run, single) -> Iterator[Cause]:
    cores = set().union(*[rank["cores"] or () for rank in run.ranks])
    threads = run.ranks[0]["threads"]
    if cores and threads > 1 and threads * run.k > len(cores):
        where, by = _set_by(run, "threads", THREADS)
        sentence = f"{run.k} processes of {threads} threads share {len(cores)} cores{by}."
        yield Cause(TOO_MANY_THREADS, 1 - len(cores) / (threads * run.k), where, sentence)


def _set_by(run, what, variables):
    """(the line that has set it or None, the variable of the environment that has, in words)."""
    report = run.ranks[0]
    name = next((variable for variable in variables if variable in report["environ"]), None)
    by_call = report["set"].get(what)
    if by_call or not name:
        return by_call, ""
    return report["set"].get(name), f" ({name}={report['environ'][name]})"
