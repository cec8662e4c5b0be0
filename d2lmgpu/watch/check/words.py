"""A verdict as one screen of plain words, with the line of code and the mend."""

from pathlib import Path

from d2lmgpu.watch import line_of_code

MENDS = {
    "mean-of-means": "Sum the loss and divide by the rows of all ranks: "
    "loss_sum * world_size / rows_of_all with DDP, loss_sum / rows_of_all if you sum gradients.",
    "wrong-scale": "Divide once, by what was added: world_size after a sum over ranks, nothing "
    "after DDP, the number of micro-batches for an accumulated loss.",
    "lr-scaled-twice": "Scale the rate in one place, at most by as much as the global batch grew.",
    "different-start": "Load or make the weights before DDP(net), or broadcast them from rank 0 "
    "before the first update.",
    "not-exchanged": "Call init_process_group, and the wrapped net: net(X), not net.module(X). By "
    "hand, write the average back into p.grad. The pass before step() must not be in no_sync.",
    "missing-parameter": "Exchange every parameter that the optimizer has: wrap all modules in one "
    "DDP, or loop over all parameters.",
    "clip-before-allreduce": "Exchange first, clip the averaged gradient then: between the last "
    "all_reduce (DDP: backward) and step().",
    "stale-gradient": "Use the exchange of this update: wait for it before step(), and set the "
    "gradients of a rank without rows to zero.",
    "aliasing": "Make a tensor for each place: [torch.empty_like(g) for _ in range(world_size)]; "
    "for replicas on one CPU, copy.deepcopy.",
    "optimizer-state": "Give all ranks the same state: load it on each, and average gradients "
    "before step() rather than weights after it.",
    "sampler": "Cut the data with one seed on all ranks; give each rows of its own: "
    "DistributedSampler, set_epoch(epoch) in each epoch; in evaluation count no row twice.",
    "same-seed": "Seed with a number of the rank once the net is made: "
    "torch.manual_seed(seed + rank).",
    "buffers": "Evaluate through the DDP net, or on rank 0 alone, or broadcast the buffers first; "
    "SyncBatchNorm has the same ones on all ranks.",
    "unknown": "Compare the script with a plain DDP script, part by part.",
}
NOT_REPLAYED = (
    "One process takes other rows than all ranks together, and they could not be replayed: "
    "compared were the gradients of each update."
)
TOLD = {
    "batch norm": "Batch norm normalises with the rows of each rank: one device with all rows "
    "differs, and that is no bug. SyncBatchNorm would use all rows.",
    "dropout": "Dropout draws other units on other ranks and with one device: the weights differ, "
    "and that is no bug.",
    "noise": "The script draws random numbers while it trains: other ranks draw others.",
}


def notes(evidence, one, watched, spawns):
    """What is told without an alarm."""
    told = [TOLD[name] for name in TOLD if any(name in r["notes"] for r in evidence.ranks)]
    rates = [update["lr"] for update in evidence.first["updates"]]
    if one and any(own != lr for own, lr in zip(one["own_lr"], rates)):
        told.append("Its learning rates depend on the devices; one was given the rates of all.")
    if not any(evidence.used(t).any() for t in range(evidence.steps)):
        told.append("Every gradient is zero: nothing is learned, so there is little to compare.")
    if spawns:
        told.append(
            f"The script starts its own processes: {evidence.world}, which is its own choice; it "
            "was not run with one."
        )
    if watched.trouble:
        told.append(watched.trouble)
    return told


def screen(verdict, script):
    """The verdict for a person."""
    same = "float64" if verdict.double else "float32"
    train = "train as one device does" if verdict.equal else "do not train as one device does"
    lines = [
        f"{verdict.devices} devices {train}: difference {verdict.difference:.1e} "
        f"({verdict.updates} updates, {same})."
    ]
    if verdict.defect != "none":
        lines.append(
            f"Defect: {verdict.defect}" + (f": {verdict.detail}." if verdict.detail else ".")
        )
        if verdict.where:
            lines.append(f"  {verdict.where}  {code(verdict.where, script)}")
        lines.append(f"Mend: {MENDS[verdict.defect]}")
    else:
        lines.append("No defect found.")
    return "\n".join(lines + [f"Note: {note}" for note in verdict.notes])


def code(where, script):
    """The line of code at "file:line", seen from the script's folder."""
    return line_of_code(where, Path(script).resolve().parent)
