# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Memory

# %% [markdown] pages=["memory/fits"]
# ## What Fits on a GPU?

# %% [markdown] exercise="largest-batch"
# ### The largest batch
#
# A training step was measured with a batch of `b1` images and with one of `b2`: the peaks were
# `peak1` and `peak2` bytes. Part of that is the same for every batch, the rest grows with the batch
# in proportion. Write `largest_batch(b1, peak1, b2, peak2, memory)`: how many images fit into
# `memory` bytes? It is 0 if not even one does.

# %%
def largest_batch(b1, peak1, b2, peak2, memory):
    per_image = (peak2 - peak1) / (b2 - b1)
    fixed = peak1 - b1 * per_image
    return max(0, int((memory - fixed) // per_image))

# %% [markdown] exercise="per-parameter" kind="predict"
# ### Bytes before the first image
#
# How many bytes do parameters, gradients and optimiser state take together? `optimizer` is `"sgd"`,
# `"momentum"` (one number a parameter) or `"adam"` (two). In 32 bits every number has 4 bytes. With
# `mixed`, parameters and gradients have 2 bytes, a copy of the parameters in 32 bits is kept
# besides, and the state has 4 bytes a number. Write `training_bytes(parameters, optimizer, mixed)`.

# %%
def training_bytes(parameters, optimizer, mixed):
    state = 4 * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
    weights = 2 + 2 + 4 if mixed else 4 + 4
    return parameters * (weights + state)

# %% [markdown] exercise="kept" kind="predict"
# ### What a dense network keeps
#
# A dense network has layers of `widths[0]` inputs, then `widths[1]`, and so on to the `widths[-1]`
# classes, with a ReLU after each layer but the last. A loss of cross-entropy follows, which keeps the
# logarithms of all probabilities and the labels, of 8 bytes each, and one number for the batch. All
# other numbers have 4 bytes. Write `kept(widths, batch_size)`: the bytes that wait for the backward
# pass. What two operations keep lies in one storage.

# %%
def kept(widths, batch_size):
    return batch_size * (4 * sum(widths) + 8) + 4

# %% [markdown] pages=["memory/out-of-memory"]
# ## Out of Memory

# %% [markdown] exercise="cleared-first"
# ### The peak with the gradients cleared first
#
# Layer `i` of a network has `weights[i]` bytes of parameters, which stay, and keeps `kept[i]` bytes
# for the backward pass. The old gradients are cleared before the forward pass. The backward pass goes
# from the last layer to the first: the gradient of a layer is as large as its parameters and stays
# until the step ends; it is made while what this layer keeps is still there, which is dropped then.
# Write `peak(weights, kept)`: the most bytes that are there at once.

# %%
def peak(weights, kept):
    there = most = sum(weights) + sum(kept)
    for size, activations in zip(reversed(weights), reversed(kept)):
        there += size
        most = max(most, there)
        there -= activations
    return most

# %% [markdown] exercise="recompute" kind="predict"
# ### How much to recompute at a time
#
# A network of `blocks` equal blocks keeps what goes into every group of `s` blocks, `edge` bytes
# for each group; the last group may be smaller. In the backward pass it recomputes one group at a
# time, which then keeps `inside` bytes for each of `s` blocks. Write `best_group(blocks, edge,
# inside)`: the `s` from 1 to `blocks` for which the sum of both is smallest, and the smaller one of
# two that are equally good.

# %%
def best_group(blocks, edge, inside):
    def kept(s):
        groups = -(-blocks // s)
        return groups * edge + s * inside

    return min(range(1, blocks + 1), key=kept)

# %% [markdown] exercise="copies" kind="predict"
# ### From which batch on autocast saves
#
# A network multiplies with `parameters` weights and keeps `numbers` numbers an example for the
# backward pass. In 32 bits each has four bytes. With `autocast` each has two, and a copy of every
# weight, of two bytes, is kept besides. Write `fewest(parameters, numbers)`: the smallest batch for
# which less is kept with `autocast` than without.

# %%
def fewest(parameters, numbers):
    return parameters // numbers + 1

# %% [markdown] pages=["memory/sharding"]
# ## ZeRO and FSDP: Shard What Everybody Copies

# %% [markdown] exercise="zero"
# ### A sharded optimiser
#
# Gradient descent with momentum, $v \leftarrow 0.9 v + g$ and $w \leftarrow w - \eta v$, where $g$
# is the *mean* of the devices' gradients. Each device has all of `w` and its own `gradient`, but
# only one part in $k$ of the momentum: device 0 the first, and so on. Write `step(device, w,
# momentum, gradient, lr)`, which returns the new `(w, momentum)`. You may use `device.rank` and
# `device.k`, `device.reduce_scatter(array)`, which returns this device's part of the *sum* over the
# devices, and `device.all_gather(part)`, which returns the parts of all devices as one array.

# %%
def step(device, w, momentum, gradient, lr):
    momentum = 0.9 * momentum + device.reduce_scatter(gradient) / device.k
    part = np.split(w, device.k)[device.rank] - lr * momentum
    return device.all_gather(part), momentum

# %% [markdown] exercise="zero-calls"
# ### Where k does not divide
#
# The same update with PyTorch's calls, in three processes. `w` and `gradient` are tensors of one
# length, which 3 need not divide. `velocity` has the length of a part, the same on each rank: one in
# $k$ of the numbers, rounded up, so that the last rank has some numbers too many. Write `step(w,
# gradient, velocity, lr)`, which changes `w` and `velocity` in place. Call `torch.distributed` twice,
# and send no more than you have to. The function imports what it needs.

# %%
def step(w, gradient, velocity, lr):
    import torch
    from torch import distributed as dist
    from torch.nn.functional import pad

    rank, k = dist.get_rank(), dist.get_world_size()
    missing = k * len(velocity) - len(w)
    mine = torch.empty_like(velocity)
    dist.reduce_scatter_tensor(mine, pad(gradient, (0, missing)))
    velocity.mul_(0.9).add_(mine / k)
    part = pad(w, (0, missing)).chunk(k)[rank] - lr * velocity
    whole = torch.empty(k * len(velocity), dtype=w.dtype)
    dist.all_gather_into_tensor(whole, part)
    w.copy_(whole[: len(w)])

# %% [markdown] exercise="norm"
# ### Clipped by whose length?
#
# Each device holds one part of the gradient. `clip(device, part, limit)` should return this
# device's part of the gradient after the *whole* gradient was shortened to the length `limit`, if
# it is longer. `device.all_gather(number)` returns an array with the numbers of all devices. With
# one device the version below is right.

# %% given="own-norm"
def clip(device, part, limit):
    length = np.sqrt((part ** 2).sum())
    return part * min(1, limit / length)

# %%
def clip(device, part, limit):
    squares = device.all_gather((part ** 2).sum())
    length = np.sqrt(squares.sum())
    return part * min(1, limit / length)

# %% [markdown]
# ### Predict first
#
# Lock a guess; the cell under the next exercise computes it with your function.

# %%
from d2lmgpu.predictions import Prediction

seven_billion = Prediction("exercises/held", "How many GB does ZeRO of stage 2 leave on each of 8 devices, of a "
                           "network with 7 billion parameters, trained in 16 bits with Adam?", "GB", low=0, high=200)
seven_billion

# %% [markdown] exercise="held" kind="predict"
# ### What each stage leaves
#
# Trained in 16 bits with Adam, a parameter takes 16 bytes: 2 for the weight, 2 for the gradient,
# and 12 for the optimiser (a copy of the weight in 32 bits and two numbers of Adam). Stage 0 shards
# nothing, stage 1 the optimiser's bytes, stage 2 the gradients, too, and stage 3 everything. Write
# `held(parameters, k, stage)`: the bytes on one of `k` devices. (A part need not be a whole number
# of bytes.)

# %%
def held(parameters, k, stage):
    weights = 2 / k if stage >= 3 else 2
    gradients = 2 / k if stage >= 2 else 2
    optimizer = 12 / k if stage >= 1 else 12
    return parameters * (weights + gradients + optimizer)

# %%
if exercises.check("held", held):
    display(seven_billion.happened(held(7e9, 8, 2) / 1e9, "modelled"))
