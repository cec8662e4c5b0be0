# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # With the Frameworks' Tools

# %% [markdown] pages=["concise/ddp-by-hand"]
# ## DDP by Hand

# %% [markdown] exercise="one-message"
# ### One message for all gradients
#
# This answer runs in two processes, with `torch.distributed` between them. `grads` are the gradients of
# this rank, tensors of any shapes with 64-bit numbers. Write `average(*grads)`: afterwards each of them
# holds the mean over the ranks, and the rank has started one message. The function travels to the
# processes alone, so it imports what it needs.

# %%
def average(*grads):
    import torch
    from torch import distributed as dist

    flat = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for grad, mean in zip(grads, flat.split([grad.numel() for grad in grads])):
        grad.copy_(mean.view_as(grad))

# %% [markdown] exercise="pass-on"
# ### Everybody sends first
#
# `pass_on(x)` hands the tensor `x` to the next rank of a ring and returns the tensor of the rank before.
# The version below also runs in two processes, and never returns. Mend it.

# %% given="deadlock"
def pass_on(x):
    import torch
    from torch import distributed as dist

    rank, k = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    dist.send(x, (rank + 1) % k)
    dist.recv(received, (rank - 1) % k)
    return received

# %%
def pass_on(x):
    import torch
    from torch import distributed as dist

    rank, k = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    sent = dist.isend(x, (rank + 1) % k)
    dist.recv(received, (rank - 1) % k)
    sent.wait()
    return received

# %% [markdown] exercise="bucket-order"
# ### Which bucket?
#
# A network has parameters of `sizes` bytes, in the order of its layers, and a bucket has room for `most`
# bytes. Buckets are filled in the order in which the backward pass computes the gradients, and a gradient
# is never divided. Write `bucket_of(sizes, most)`: for each parameter the number of its bucket, from 0 up in
# the order in which they leave.

# %%
def bucket_of(sizes, most):
    numbers, bucket, held = [0] * len(sizes), 0, 0
    for i in reversed(range(len(sizes))):
        if held and held + sizes[i] > most:
            bucket, held = bucket + 1, 0
        numbers[i] = bucket
        held += sizes[i]
    return numbers

# %% [markdown] exercise="leave-when-full"
# ### Buckets that leave
#
# This answer runs in two processes, too. `grads` is a generator: it computes the gradients of this rank
# one after the other, in the order of the backward pass, tensors of any shapes with 64-bit numbers. A
# bucket has room for `limit` numbers; a gradient that has more gets a bucket of its own. Write
# `average(grads, limit)`: afterwards each gradient holds the mean over the ranks. There is one allreduce
# for each bucket. If a gradient does not fit into the bucket any more, start the allreduce of the
# bucket, before you ask for the next gradient, and wait for none of them until all gradients are there.

# %%
def average(grads, limit):
    import torch
    from torch import distributed as dist

    bucket, held, sent = [], 0, []

    def leave():
        flat = torch.cat([grad.flatten() for grad in bucket])
        sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    for grad in grads:
        if bucket and held + grad.numel() > limit:
            leave()
            bucket, held = [], 0
        bucket.append(grad)
        held += grad.numel()
    leave()
    for members, flat, work in sent:
        work.wait()
        flat /= dist.get_world_size()
        for grad, mean in zip(members, flat.split([grad.numel() for grad in members])):
            grad.copy_(mean.view_as(grad))

# %% [markdown] pages=["concise/pytorch"]
# ## Multi-GPU Training in PyTorch

# %% [markdown] exercise="shard-loss"
# ### The loss of one rank
#
# After `backward`, DDP adds up the gradients of all ranks and divides by their number. `losses` are
# the losses of the images on this rank: as many as there are, perhaps none. Write
# `shard_loss(losses, world_size, global_batch)`: the one number on which this rank should call
# `backward`, so that the result is the gradient of the mean loss over the global batch.

# %%
def shard_loss(losses, world_size, global_batch):
    return sum(losses) * world_size / global_batch

# %% [markdown] exercise="each-once"
# ### Copies that do not count
#
# This answer runs in three processes. A sampler deals `n` test images in their order: rank $r$ of $k$ gets the
# places $r$, $r+k$, $r+2k$, and so on. After the last image it goes on with the first ones, until
# all ranks have equally many. `predicted` and `labels` are whole numbers, one for each image of this
# rank, copies included. Write `accuracy(predicted, labels, n)`, which returns on every rank the share of
# the `n` images for which both are equal, each image counted once. One sum over the ranks, of one or
# two numbers, is enough. The function imports what it needs.

# %%
def accuracy(predicted, labels, n):
    import torch
    from torch import distributed as dist

    places = dist.get_rank() + dist.get_world_size() * torch.arange(len(labels))
    right = ((predicted == labels) & (places < n)).sum()
    dist.all_reduce(right)
    return right.item() / n

# %% [markdown] exercise="through-gpu-0"
# ### Through GPU 0
#
# A step of `nn.DataParallel` on `k` GPUs: GPU 0 sends the parameters to each of the others, and their shards of the
# batch; it receives their outputs. In the backward pass it sends them the gradients of these outputs, and receives
# from each of them the gradients of all parameters. `params`, `inputs` and `outputs` are bytes: of the parameters (and so of their
# gradients), of the whole batch, and of all outputs (and so of their gradients). The shards are equal. Write
# `through_gpu_0(params, inputs, outputs, k)`: the bytes that leave or reach GPU 0 in a step.

# %%
def through_gpu_0(params, inputs, outputs, k):
    others = (k - 1) / k
    forward = (k - 1) * params + others * (inputs + outputs)
    backward = others * outputs + (k - 1) * params
    return forward + backward

# %% [markdown]
# ### Predict first
#
# *Dive into Deep Learning* asks what happens with 16 GPUs. Lock a guess; the cell under the next
# exercise computes it with your function.

# %%
from d2lmgpu.predictions import Prediction

sixteen = Prediction("exercises/sixteen", "How many times as fast as one device are 16, if they share "
                     "a batch of 256, an image takes 0.5 ms, and each step 5 ms that nobody shares?",
                     "times", low=0, high=16)
sixteen

# %% [markdown] exercise="sixteen" kind="predict"
# ### Sixteen GPUs
#
# An epoch has `n` images, in batches of `batch_size`; the last one may be smaller. Each batch is
# divided among `k` devices as evenly as possible. A device takes `per_image` seconds for each of
# its images, all devices at the same time, and each step takes `fixed` seconds besides. Write
# `epoch_seconds(n, batch_size, k, per_image, fixed)`.

# %%
def epoch_seconds(n, batch_size, k, per_image, fixed):
    total = 0
    for start in range(0, n, batch_size):
        images = min(batch_size, n - start)
        largest = -(-images // k)
        total += fixed + per_image * largest
    return total

# %%
if exercises.check("sixteen", epoch_seconds):
    on_one, on_all = (epoch_seconds(60000, 256, k, 0.0005, 0.005) for k in (1, 16))
    display(sixteen.happened(on_one / on_all, "modelled"))

# %% [markdown] pages=["concise/ragged"]
# ## Ragged Batches and Batch Norm

# %% [markdown] exercise="batch-norm"
# ### What SyncBatchNorm has to know
#
# Each device has computed the mean, the variance and the number of the values on it. The variance
# is the mean squared distance from the device's own mean. Write `batch_statistics(means, variances,
# sizes)`: the pair `(mean, variance)` of all values together.

# %%
def batch_statistics(means, variances, sizes):
    n = sum(sizes)
    mean = sum(m * size for m, size in zip(means, sizes)) / n
    of = zip(means, variances, sizes)
    variance = sum((v + (m - mean) ** 2) * size for m, v, size in of) / n
    return mean, variance

# %% [markdown] exercise="idle-ranks"
# ### Who is idle?
#
# `n` images are read in batches of `batch_size`, and each batch is divided among `k` ranks as evenly as possible.
# Write `idle_ranks(n, batch_size, k)`: how many ranks have no image in the last batch.

# %%
def idle_ranks(n, batch_size, k):
    last = n % batch_size or batch_size
    return max(0, k - last)

# %% [markdown] exercise="joined"
# ### After Join
#
# A network has one weight, 0 at the start, and each gradient is 1. Rank $r$ makes `steps[r]` steps of gradient descent
# with the learning rate `lr`, under DDP's `Join`. Write `last_weight(steps, lr)`: the weight in the end.

# %%
def last_weight(steps, lr):
    weight = 0
    for step in range(max(steps)):
        still_there = sum(of_rank > step for of_rank in steps)
        weight -= lr * still_there / len(steps)
    return weight

# %% [markdown] pages=["concise/streams"]
# ## Streams of Data

# %% [markdown] exercise="deal-shards"
# ### Deal the shards
#
# A data set has `n` shards, with the numbers 0, 1, …, and is read by `world_size` ranks with `num_workers` loading workers each. Write
# `shards_of(n, rank, world_size, worker, num_workers)`: the list of the shards that this worker of this rank reads. Each shard
# is read once. No rank has two shards more than another, and no worker two more than another worker of its rank.

# %%
def shards_of(n, rank, world_size, worker, num_workers):
    of_rank = range(rank, n, world_size)
    return list(of_rank[worker::num_workers])

# %% [markdown] exercise="agreed-steps"
# ### How many updates?
#
# Worker `w` of rank `r` reads `examples[r][w]` examples, and makes its own batches of `batch_size` of them. Its last batch
# may be smaller; with `drop_last` it leaves a smaller one out. Write `updates(examples, batch_size, drop_last)`: the largest number of
# updates that all ranks can make in this epoch.

# %%
def updates(examples, batch_size, drop_last):
    def batches(n):
        return n // batch_size if drop_last else -(-n // batch_size)

    return min(sum(batches(n) for n in workers) for workers in examples)

# %% [markdown] exercise="buffer-end"
# ### Some never come out
#
# `shuffled(stream, size, g)` is a shuffle buffer: a generator of the examples of `stream`, in an order that NumPy's
# generator `g` draws. It never holds more than `size` examples, also where the stream has no end. After an epoch some examples are
# missing. Mend it.

# %% given="missing"
def shuffled(stream, size, g):
    buffer = []
    for example in stream:
        if len(buffer) < size:
            buffer.append(example)
        else:
            i = g.integers(size)
            yield buffer[i]
            buffer[i] = example

# %%
def shuffled(stream, size, g):
    buffer = []
    for example in stream:
        if len(buffer) < size:
            buffer.append(example)
        else:
            i = g.integers(size)
            yield buffer[i]
            buffer[i] = example
    g.shuffle(buffer)
    yield from buffer

# %% [markdown] pages=["concise/settings"]
# ## Messages and Settings

# %% [markdown] exercise="bfloat16"
# ### 16 bits by hand
#
# A bf16 number has the upper 16 bits of a float32. Write `round_to_bf16(x)` for an array of float32: each value is
# replaced by the nearest one whose lower 16 bits are zero; of two that are equally near, by the one whose last bit that stays is
# 0. The result is float32 again. NumPy has no bf16, so look at the bits.

# %%
def round_to_bf16(x):
    bits = x.view(np.uint32)
    last = (bits >> 16) & 1
    rounded = bits + np.uint32(0x7FFF) + last
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)

# %% [markdown] exercise="velocity"
# ### What momentum is heading for
#
# Momentum takes $v \leftarrow \mu v + g$ in each step, from $v = 0$. The gradient is the same number in all steps. Write
# `velocity(gradient, mu, n)`: $v$ after `n` steps.

# %%
def velocity(gradient, mu, n):
    v = 0
    for _ in range(n):
        v = mu * v + gradient
    return v

# %% [markdown] exercise="pays-after"
# ### When compiling pays
#
# Compiling takes `seconds` once. A step took `step` seconds before, and is `factor` times as fast afterwards. Write
# `pays_after(seconds, step, factor)`: the smallest number of steps after which training was no longer
# than without compiling, compiling included.

# %%
def pays_after(seconds, step, factor):
    saved = step - step / factor
    return int(np.ceil(seconds / saved))

# %% [markdown] pages=["concise/torchrun"]
# ## A Script for torchrun

# %% [markdown] exercise="evaluate"
# ### Every image once
#
# A sampler has dealt `n` test images to the devices, and repeated some so that all get equally
# many. `indices[r]` are the images of device `r`, and `correct[r]` says of each whether it was
# classified correctly. Write `evaluate(indices, correct, n)`: the accuracy over the `n` images.

# %%
def evaluate(indices, correct, n):
    right = {}
    for of, whether in zip(indices, correct):
        right.update(zip(of, whether))
    return sum(right.values()) / n

# %% [markdown] exercise="sampler"
# ### A sampler without set_epoch
#
# `sampler(n, k, rank, epoch, seed)` returns the images of one rank, in the order in which it should
# see them. In an epoch all `k` ranks together see each of the `n` images once, shared out as evenly
# as possible. The version below
# has the mistake of a script that never calls `set_epoch`.

# %% given="epoch"
def sampler(n, k, rank, epoch, seed):
    order = np.random.default_rng(seed).permutation(n)
    return order[rank::k]

# %%
def sampler(n, k, rank, epoch, seed):
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return order[rank::k]

# %% [markdown] exercise="left-out" kind="predict"
# ### Nobody sees them
#
# A `DistributedSampler` with `drop_last` deals `n` images to `k` ranks. The loader of each rank makes batches of
# `batch / k` of its images, which is a whole number, and drops a last one that is smaller. Write `left_out(n, k, batch)`:
# how many of the `n` images no rank sees in an epoch.

# %%
def left_out(n, k, batch):
    return n % batch

# %% [markdown] pages=["concise/overnight"]
# ## A Night That Nobody Watches

# %% [markdown] exercise="newest"
# ### The newest that is whole
#
# `names` are the checkpoints in a folder, in any order, as `epoch-9.pt` and `epoch-10.pt`: their numbers have no zeros in
# front. `is_whole(name)` reads one from end to end and says whether it is as it was written. Write `newest(names,
# is_whole)`: the name of the newest that is whole. In the first run there is none: return None. If there are some, and
# all are damaged, raise `SystemExit`, for to begin anew would throw away what was trained. Read no
# checkpoint that is older than the one that you return.

# %%
def newest(names, is_whole):
    for name in sorted(names, key=lambda name: -int(name[6:-3])):
        if is_whole(name):
            return name
    if names:
        raise SystemExit("No checkpoint is whole.")

# %% [markdown] exercise="one-name"
# ### One name for all
#
# A run gets a name, and a file of that name with its settings. `choose()` returns a name, another one at
# each call and on each rank; `write(name)` writes the file; `read(name)` returns what is in it. Write
# `begin(choose, write, read)`, which runs in three processes: rank 0 alone chooses and writes, once, and
# every rank, rank 0 included, reads that file itself and returns what it has read. No rank may read
# before the file is there.

# %%
def begin(choose, write, read):
    from torch import distributed as dist

    name = [None]
    if dist.get_rank() == 0:
        name[0] = choose()
        write(name[0])
    dist.broadcast_object_list(name, src=0)
    return read(name[0])

# %% [markdown] exercise="lost" kind="predict"
# ### What a kill costs
#
# A job wants `total` updates, and writes a checkpoint after every `every` of them. It is killed
# just after the updates whose numbers are in `kills`, a rising list, each of them once. If a
# checkpoint is due after that update, it has been written before the kill. Each time the job
# goes on from its last checkpoint, or from 0 if there is none. Write `computed(total, every,
# kills)`: how many updates are computed in all, those that are done again included.

# %%
def computed(total, every, kills):
    return total + sum(kill % every for kill in kills)

# %% [markdown] pages=["concise/accumulation"]
# ## Accumulate and Save Messages

# %% [markdown] exercise="accumulate"
# ### A large batch in small pieces
#
# `gradient(X, y)` gives the mean gradient over the images that it is given, and there is room for
# at most `micro` of them. Write `accumulate(gradient, X, y, micro)`: the mean gradient over all of
# `X` and `y`.

# %%
def accumulate(gradient, X, y, micro):
    total = 0
    for i in range(0, len(X), micro):
        part = slice(i, i + micro)
        total += len(X[part]) * gradient(X[part], y[part])
    return total / len(X)

# %% [markdown] exercise="send-once"
# ### Send once
#
# This answer runs in two processes. A rank has some rows of the batch, `X` and `y`, not as many as the
# other one, and `n` is how many both have together. `gradient(X, y)` gives the *sum* of the gradients of
# the rows that it is given, a tensor, and there is room for at most `micro` rows. Write
# `accumulate(gradient, X, y, micro, n)`: the mean gradient over all `n` rows, on both ranks. Each rank
# starts one message. The function imports what it needs.

# %%
def accumulate(gradient, X, y, micro, n):
    from torch import distributed as dist

    total = 0
    for i in range(0, len(X), micro):
        total = total + gradient(X[i : i + micro], y[i : i + micro])
    dist.all_reduce(total)
    return total / n

# %% [markdown] exercise="clip"
# ### Clipped too early
#
# `gradients` are those of the micro-batches, each a *sum* over its images, and `sizes` how many
# images they have. `clipped(gradients, sizes, limit)` should return the mean gradient of the batch,
# shortened to the length `limit` if it is longer. What it returns is another gradient.

# %% given="each"
def clipped(gradients, sizes, limit):
    total = 0
    for gradient in gradients:
        length = np.linalg.norm(gradient)
        total = total + gradient * min(1, limit / length)
    return total / sum(sizes)

# %%
def clipped(gradients, sizes, limit):
    mean = sum(gradients) / sum(sizes)
    length = np.linalg.norm(mean)
    return mean * min(1, limit / length)

# %% [markdown] exercise="micro" kind="predict"
# ### How many micro-batches?
#
# A batch is divided among `k` devices as evenly as possible, and a device has room for `room`
# images at a time. It fills its micro-batches one after the other. Write `micro_batches(batch, k,
# room)` for the device with the largest share: the pair `(number of micro-batches, images in the
# last one)`.

# %%
def micro_batches(batch, k, room):
    share = -(-batch // k)
    number = -(-share // room)
    return number, share - (number - 1) * room

# %% [markdown] pages=["concise/mxnet", "lab/gluon-mnist"]
# ## Multi-GPU Training in MXNet: Gluon's Trainer

# %% [markdown] exercise="accuracy"
# ### Accuracy on several devices
#
# *Dive into Deep Learning* asks for the test accuracy on several GPUs. `predicted` and `labels` are
# lists with one array a device; the arrays of two devices may have different lengths, and one may
# be empty. Write `accuracy(predicted, labels)`.

# %%
def accuracy(predicted, labels):
    right = sum((p == y).sum() for p, y in zip(predicted, labels))
    return right / sum(len(y) for y in labels)

# %% [markdown] exercise="trainer"
# ### Unequal shards in one step
#
# `gradient(w, X, y)` gives the *sum* of the gradients of its images. `shards` has one `(X, y)` for
# each device, and one of them may be empty. `step` should change `w` in place as one device would
# with the whole batch. With shards of one size it does.

# %% given="mean-of-means"
def step(w, gradient, shards, lr):
    gradients = [gradient(w, X, y) / len(X) for X, y in shards if len(X) > 0]
    w -= lr * sum(gradients) / len(gradients)

# %%
def step(w, gradient, shards, lr):
    gradients = [gradient(w, X, y) for X, y in shards]
    w -= lr * sum(gradients) / sum(len(X) for X, y in shards)

# %% [markdown] exercise="waitall" kind="predict"
# ### Without waitall
#
# *Dive into Deep Learning* asks what happens without `npx.waitall()`. The host takes `load`
# seconds to load a batch and to hand it over, and the device can begin with it no earlier. Then it
# takes `compute` seconds for the step, and works on one step after the other. (Queueing a step, which
# the device does not wait for, takes no time here.) With `waits`, the host waits after each step
# until the device is done; without, it never waits. Write `seconds(steps, load, compute, waits)`:
# when is the device done with the last step?

# %%
def seconds(steps, load, compute, waits):
    if waits:
        return steps * (load + compute)
    return load + (steps - 1) * max(load, compute) + compute
