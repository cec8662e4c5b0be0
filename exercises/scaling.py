# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Scaling

# %% [markdown] pages=["scaling/allreduce"]
# ## Allreduce: Six Ways to Add Up

# %% [markdown] exercise="ring"
# ### Allreduce by ring
#
# Every device runs your function at the same time, in a thread of its own. `device.rank` and
# `device.k` say which one of how many it is, `device.send(array, to)` sends a copy and does not
# wait, and `device.receive(source)` waits for one and returns it. Write `allreduce_ring(device,
# data)`: afterwards the array `data` holds the sum over all devices, and no device has sent more
# than $2(k-1)/k$ times its array. Its length may be any number; for lengths that $k$ does not
# divide the bytes are not counted.

# %%
def allreduce_ring(device, data):
    k, i = device.k, device.rank
    if k == 1:
        return
    parts = np.array_split(data, k)
    for r in range(k - 1):
        device.send(parts[(i - r) % k], (i + 1) % k)
        parts[(i - r - 1) % k] += device.receive((i - 1) % k)
    for r in range(k - 1):
        device.send(parts[(i + 1 - r) % k], (i + 1) % k)
        parts[(i - r) % k][:] = device.receive((i - 1) % k)

# %% [markdown] exercise="halving"
# ### Allreduce by halves
#
# The same for $k = 2^m$ devices, with fewer messages: in each round a device gives one half of what
# it still adds up to a partner, at distance $k/2, k/4, \dots, 1$, and at the end all is handed out
# the same way back. Write `allreduce_halving(device, data)`; no device may send more than $2 \log_2
# k$ messages, nor more bytes than in the ring. The length of `data` is a multiple of `k`.

# %%
def allreduce_halving(device, data):
    rounds, distance = [], device.k // 2
    while distance > 0:
        partner = device.rank ^ distance
        low, high = np.split(data, 2)
        keep, give = (low, high) if device.rank < partner else (high, low)
        device.send(give, partner)
        keep += device.receive(partner)
        rounds.append((partner, keep, give))
        data, distance = keep, distance // 2
    for partner, kept, given in reversed(rounds):
        device.send(kept, partner)
        given[:] = device.receive(partner)

# %% [markdown]
# ### Predict first
#
# A tree has few rounds and sends the whole array in each, a ring has many rounds and sends a part.
# Lock a guess; the cell under the next exercise computes it with your function.

# %%
from d2lmgpu.predictions import Prediction

ring_or_tree = Prediction("exercises/crossover", "From how many megabytes on is a ring faster than a tree, "
                          "on 64 devices with 10 µs latency and 10 GB/s?", "MB", low=0, high=1000)
ring_or_tree

# %% [markdown] exercise="crossover" kind="predict"
# ### Ring or tree?
#
# A message of `b` bytes takes `latency + b / bandwidth` seconds. A tree over $k = 2^m$ devices
# sends the whole array in each of $2 \log_2 k$ rounds, a ring a part of $1/k$ in each of $2(k-1)$.
# Write `crossover(k, latency, bandwidth)`: the number of bytes for which both take equally long,
# for $k \ge 4$.

# %%
def crossover(k, latency, bandwidth):
    more_rounds = (k - 1) - np.log2(k)
    fewer_arrays = np.log2(k) - (k - 1) / k
    return latency * bandwidth * more_rounds / fewer_arrays

# %%
if exercises.check("crossover", crossover):
    display(ring_or_tree.happened(crossover(64, 1e-5, 1e10) / 1e6, "modelled"))

# %% [markdown] pages=["scaling/overlap"]
# ## Overlap: Nobody Should Wait

# %% [markdown] exercise="look-ahead"
# ### Two steps ahead
#
# The host takes `host[i]` seconds to prepare batch `i`, the device `device[i]` seconds to train on
# it. The host prepares one batch after the other. It may begin with a batch only while at
# most `ahead` of those before it are not yet trained on, as on the page: with 0 it waits for each
# step. (*Dive into Deep Learning* asks for an overlap of two steps.) Write `total(host, device,
# ahead)`: when is the device done with all?

# %%
def total(host, device, ahead):
    prepared, done = 0, []
    for i in range(len(host)):
        room = done[i - 1 - ahead] if i > ahead else 0
        prepared = max(prepared, room) + host[i]
        done.append(max(prepared, done[-1] if done else 0) + device[i])
    return done[-1]

# %% [markdown] exercise="sync"
# ### A wait in each step
#
# `device.step(batch)` issues a training step and returns its loss without waiting. `loss.item()`
# waits until the device has computed it, and gives the number. `mean_loss` should return the mean
# loss over all batches. It does, but the host, which prepares a batch in each turn of the loop,
# waits in each turn, too.

# %% given="sync"
def mean_loss(batches, device):
    total = 0
    for batch in batches:
        loss = device.step(batch)
        total += loss.item()
    return total / len(batches)

# %%
def mean_loss(batches, device):
    losses = []
    for batch in batches:
        losses.append(device.step(batch))
    return sum(loss.item() for loss in losses) / len(batches)

# %% [markdown] exercise="buckets" kind="predict"
# ### When has the last bucket arrived?
#
# A backward pass computes the gradients of one layer after the other: the `i`-th takes `times[i]`
# seconds and has `sizes[i]` bytes. They are collected, and as soon as there are `bucket` bytes or
# more, all that has been collected is sent in one message; what is left is sent after the last
# layer. A message takes `latency` seconds and its bytes over `bandwidth`, beside the computing, and
# messages travel one after the other. Write `finished(times, sizes, bucket, latency, bandwidth)`:
# when has the last message arrived?

# %%
def finished(times, sizes, bucket, latency, bandwidth):
    now = free = collected = 0
    for i in range(len(times)):
        now += times[i]
        collected += sizes[i]
        if collected >= bucket or i == len(times) - 1:
            free = max(now, free) + latency + collected / bandwidth
            collected = 0
    return free

# %% [markdown] pages=["scaling/batch-size"]
# ## Batch Size and Learning Rate

# %% [markdown] exercise="warm-up"
# ### Warm-up
#
# The batch is `k` times as large, so the learning rate is `k` times `base` in the end, and `base`
# in update 0. In between, over `warmup` updates, it rises in a straight line; from update `warmup`
# on it stays. Write `lr_at(update,
# base, k, warmup)`.

# %%
def lr_at(update, base, k, warmup):
    done = min(1, update / warmup)
    return base * (1 + (k - 1) * done)

# %% [markdown] exercise="noise-scale"
# ### The gradient noise scale
#
# The mean squared length of a gradient over a batch of `B` images is $G + S/B$: the signal, and the
# noise of one image over the batch. It was measured with two batches: `small` with `b_small`
# images, `large` with `b_large`. Write `noise_scale(small, large, b_small, b_large)`, which is
# $S/G$.

# %%
def noise_scale(small, large, b_small, b_large):
    S = (small - large) / (1 / b_small - 1 / b_large)
    G = small - S / b_small
    return S / G

# %% [markdown] exercise="updates" kind="predict"
# ### k devices, k times the batch
#
# *Dive into Deep Learning* asks to change the batch from `b` to `k · b` on `k` GPUs. With one
# device an epoch of `n` images has batches of `batch_size`, the last one may be smaller, and the
# learning rate is `lr`. Write `plan(n, batch_size, lr, k, epochs)` for the batch that is `k` times
# as large: the pair `(updates in all epochs, learning rate by the linear rule)`.

# %%
def plan(n, batch_size, lr, k, epochs):
    updates = -(-n // (k * batch_size))
    return epochs * updates, k * lr
