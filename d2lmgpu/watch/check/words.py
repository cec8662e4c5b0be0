"""A verdict as one screen of plain words, with the line of code and the mend."""

from pathlib import Path

from d2lmgpu.watch import line_of_code
from d2lmgpu.watch.check import by_evaluations, by_facts

MENDS = {
    "mean-of-means": "Sum the loss and divide by the rows of all ranks: "
    "loss_sum * world_size / rows_of_all with DDP, loss_sum / rows_of_all if you sum gradients.",
    "wrong-scale": "Divide once, by what was added: world_size after a sum over ranks, nothing "
    "after DDP, the number of micro-batches for an accumulated loss.",
    "lr-scaled-twice": "Scale the rate in one place, at most by as much as the global batch grew.",
    "schedule": "Step the schedule once an update, or count its whole length in such steps. With "
    "Accelerate: step_scheduler_with_optimizer=False, or do not prepare() the scheduler.",
    "different-start": "Load or make the weights before DDP(net), or broadcast them from rank 0 "
    "before the first update.",
    "not-exchanged": "Call init_process_group, and the wrapped net: net(X), not net.module(X). By "
    "hand, write the average back into p.grad. The pass before step() must not be in no_sync.",
    "partly-exchanged": "Exchange once, with all micro-batches: no_sync, or no exchange, for all "
    "but the last of them, and with DDP the exchange in its backward pass.",
    "missing-parameter": "Exchange every parameter that the optimizer has: wrap all modules in one "
    "DDP, or loop over all parameters.",
    "clip-before-allreduce": "Exchange first, clip the averaged gradient then: between the last "
    "all_reduce (DDP: backward) and step().",
    "norm": "Take the norm of the averaged gradient, after the exchange, on each rank. Sum "
    "squares of norms over ranks only where each holds a part of the gradient, as a shard.",
    "nothing-learned": "Make the optimizer from the net as it is trained, after the last layer is "
    "replaced or loaded, and let the loss reach it: no detach, no softmax over one score.",
    "stale-gradient": "Use the exchange of this update: wait for it before step(), and set the "
    "gradients of a rank without rows to zero.",
    "aliasing": "Make a tensor for each place: [torch.empty_like(g) for _ in range(world_size)]; "
    "for replicas on one CPU, copy.deepcopy.",
    "optimizer-state": "Give all ranks the same state: load it on each, and average gradients "
    "before step() rather than weights after it.",
    "sampler": "Cut the data with one seed on all ranks; give each rows of its own: "
    "DistributedSampler, set_epoch(epoch) in each epoch; in evaluation count no row twice.",
    "same-seed": "Seed with a number of the rank once the net is made: "
    "torch.manual_seed(seed + rank), np.random.seed(seed + rank), random.seed(seed + rank).",
    "buffers": "Evaluate through the DDP net, or on rank 0 alone, or broadcast the buffers first; "
    "SyncBatchNorm has the same ones on all ranks.",
    "evaluation": "Sum hits and rows over all ranks with all_reduce, and divide those sums; or let "
    "every rank, or rank 0 alone, evaluate all rows. Print a number of one rank with its rank.",
    "backward-sum": "Look at the input of what is cut by columns: its gradient is summed over the "
    "ranks, once (Megatron's f). The sum behind cut rows hands its gradient on as it is (g).",
    "forward-sum": "Look at what is cut by rows: its outputs are summed over the ranks, once, and "
    "its bias is added after the sum.",
    "plan": "Name the entries as named_modules() has the layers of the module that is given to "
    "parallelize_module. What matches none is not cut: each rank trains the whole.",
    "unknown": "Compare the script with a plain DDP script, part by part.",
}
PARTED = (
    "The optimizer of a rank holds other tensors than those that the backward pass reaches: parts "
    "of the weights, or copies. check compares whole gradients only, as the net's parameters have "
    "them."
)
SHARDED = (
    "The script shards its parameters and gives each rank rows of its own, as FSDP does: check "
    "compares parts of parameters only where all ranks get the same rows."
)
OTHER_NAMES = (
    "Each rank has parts of the parameters, and one process has parameters of other names. Make "
    "the same net with every WORLD_SIZE, and cut its parameters in place."
)
NO_NAMES = (
    "Each rank has parts of the parameters, and several have the same name. Call the whole net, as "
    "an nn.Module that holds all of them."
)
ROWS_UNSEEN = (
    "Each rank has parts of the parameters, and what goes into the net is not seen. Give it to an "
    "nn.Module as a tensor."
)
OTHER_ROWS_OF_PARTS = (
    "Each rank has parts of the parameters, and in update {number} one process takes other rows "
    "than they do. Let the rows not depend on the number of processes, but on one seed."
)
MISSING_PARTS = (
    "The parts of {name} that the ranks hold are not all of what one process has. Cut it so that "
    "every entry is on a rank."
)
SAME_PARTS = (
    "The ranks hold the same part of {name}, and one process has other numbers beside it. Where "
    "weights are drawn after the cut (FSDP2, from the meta device), ranks on CPUs with one seed "
    "draw alike. Draw the whole net before it is cut, or load it."
)
NO_GRADIENT = (
    "Of {name} some have a gradient and some have none: on a rank, or on one device. Let every "
    "parameter be used with every number of processes."
)
SEVERAL_OPTIMIZERS = (
    "Each rank has parts of the parameters, and several optimizers update them: only the first is "
    "seen. Give all parameters to one, in groups, for the check."
)
SCALED = "the gradients of the ranks are"
NO_WAY = "No weight moves: the gradients are zero, or the rate is. Let it learn something."
NO_GROUP = (
    "With these arguments the script joins no group: each of its processes trains by itself. Give "
    "it the arguments with which it trains on several devices."
)
SPAWNS = (
    "The script starts its own processes, and counts as many where it is given one. Take the "
    "number from dist.get_world_size(), or hand it to the function that mp.spawn starts."
)
TOO_LARGE = (
    "The weights are too large to be kept. Make the net smaller for the check, with fewer layers."
)
ONE_FAILED = "With one process it does not train: {} Let it train with WORLD_SIZE=1, too."
NOT_TAUGHT = (
    "One process has other parameters than a rank, or nothing that it calls is an nn.Module, and "
    "rank 0's weights could not be given to it. Make the same net with every WORLD_SIZE."
)
FIXED = (
    "The loss is divided by a number that does not grow with the rows, so with all rows it is {k} "
    "times their mean. Divide it by the rows that are there, as len(X)."
)
TOO_FEW = (
    "Only {updates} fitted into its time limit here, too few to say that it trains as one device "
    "does. Give it a smaller net, or smaller batches."
)
FIRST_EPOCH = (
    "Its time limit came in its first epoch. What is wrong in a later one was not looked for, such "
    "as an order of rows that stays, nor in an evaluation. With smaller batches more is seen."
)
NO_BUG = {
    "batch norm": "Batch norm normalises with the rows of each rank: one device with all rows "
    "differs, and that is no bug. SyncBatchNorm would use all rows.",
    "dropout": "Dropout draws other units on other ranks and with one device: the weights differ, "
    "and that is no bug. With a rate of 0 they can be compared.",
    "noise": "The script draws random numbers while it trains: other ranks draw others.",
}


def other_rows(comparison) -> str:
    """Why a comparison tells nothing, and what would help."""
    if comparison.forced:
        return SPAWNS
    if comparison.fixed:
        return FIXED.format(k=comparison.many.world)
    if comparison.difference is None:
        return "No weight moves: the gradients are zero, or the rate is. Let it learn something."
    if comparison.same_rows or not comparison.total:
        return "What goes into the net is not seen. Give it to an nn.Module as a tensor."
    return (
        f"One process takes other rows than all ranks together ({comparison.common} of "
        f"{comparison.total} are the same), and they could not be replayed. Let the rows of an "
        "update not depend on the number of processes, as with a DataLoader and its "
        "DistributedSampler, or rows[rank::world_size]."
    )


def no_slice(name, rank, part, whole) -> str:
    """Of a rank's part that is not found in what one process begins with; shapes."""
    return (
        f"Rank {rank} begins with {name} of shape {part}, and that is no slice of the one of shape "
        f"{whole} that one process begins with. So nobody can tell what it is a part of. Make the "
        "whole parameter on every rank with one seed, and cut it along one dimension."
    )


def drawn(evidence) -> list[str]:
    """Why weights may differ though nothing is wrong."""
    return [NO_BUG[name] for name in NO_BUG if any(name in r["notes"] for r in evidence.ranks)]


def curve(evidence, comparison) -> str | None:
    """The numbers for which a curve may change though nothing is wrong; None if none does."""
    grown, batch = by_facts.growth(evidence, comparison) or (1, 1)
    if comparison.forced or max(abs(grown - 1), abs(batch - 1)) < by_facts.ROUND:
        return None
    parts = [f"the global batch is {_times(batch)}: {evidence.rows(0)} rows"]
    if abs(batch - 1) > by_facts.ROUND:
        parts[0] += f" in place of {comparison.own_rows:.0f}"
    updates, updates_of_single = evidence.updates_an_epoch, comparison.single.updates_an_epoch
    if updates and updates_of_single:
        parts.append(f"{updates} updates an epoch in place of {updates_of_single}")
    parts.append(f"the learning rate is {_times(grown)}")
    changes = "; ".join(parts)
    return f"With {evidence.world} devices {changes}. One was given the rows and the rates of all."


def _times(factor):
    if abs(factor - 1) < by_facts.ROUND:
        return "unchanged"
    return f"{factor:.3g} times as large"


def notes(evidence, comparison, watched, defect) -> list[str]:
    """What is told without an alarm."""
    remarks = drawn(evidence)
    rates = [update["lr"] for update in evidence.first["updates"]]
    if comparison and defect == "none" and (changed := curve(evidence, comparison)):
        remarks.append(changed)
    elif comparison and any(own != lr for own, lr in zip(comparison.own_lr, rates)):
        remarks.append("Its learning rates depend on the devices; one was given the rates of all.")
    if defect == "none" and (own := by_evaluations.own_part(evidence, comparison)):
        remarks.append(own)
    if defect == "none" and evidence.ends_early:
        remarks.append(FIRST_EPOCH)
    if watched.trouble:
        remarks.append(watched.trouble)
    return remarks


def screen(verdict, script) -> str:
    """The verdict for a person."""
    same = "float64" if verdict.double else "float32"
    devices, extent = f"{verdict.devices} devices", f"{verdict.updates} updates, {same}"
    if verdict.outcome == "not compared":
        lines = [f"{devices} could not be compared with one ({extent}): {verdict.reason}"]
    elif verdict.equal is None:
        lines = [f"{devices} could not be compared with one ({extent}), but something is wrong."]
    else:
        train = "train as one device does" if verdict.equal else "do not train as one device does"
        lines = [f"{devices} {train}: difference {verdict.difference:.1e} ({extent})."]
    if verdict.defect != "none":
        lines.append(
            f"Defect: {verdict.defect}" + (f": {verdict.detail}." if verdict.detail else ".")
        )
        if verdict.where:
            lines.append(f"  {verdict.where}  {code(verdict.where, script)}")
        lines.append(f"Mend: {MENDS[verdict.defect]}")
    elif verdict.equal:
        lines.append("No defect found in these updates.")
    return "\n".join(lines + [f"Note: {note}" for note in verdict.notes])


def code(where, script) -> str:
    """The line of code at "file:line", seen from the script's folder."""
    return line_of_code(where, Path(script).resolve().parent)
