# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [raw]
# # ASSIGNMENT CONFIG
# init_cell: false
# export_cell: false
# solutions_pdf: false
# template_pdf: false
# generate:
#   points_possible: 10
#   show_hidden: false

# %% [markdown]
# # Exercises: Write It Yourself
#
# Ten short functions, one for each idea of the course. You write them with NumPy alone, so that they are the same whether you
# came by way of PyTorch or of MXNet. Run the cell below each of them: it tries your function on many cases, in a
# process of its own, and says what is right, what is wrong and by how much. Stuck? `exercises.hint("combine")` gives a
# hint, and a second one. The page *Exercises That Check Themselves* of the book has the solutions.

# %%
import numpy as np

from d2lmgpu.course import exercises

# %% [raw]
# # BEGIN QUESTION
# name: combine
# points: 1
# check_cell: false

# %% [markdown]
# **1. The mean of means.** Each device has computed the mean gradient of its shard. Write `combine(means, sizes)`, the
# mean gradient of the whole batch. A device without images has size 0, and its mean is NaN. (Chapter *Data
# Parallelism*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def combine(means, sizes):
    # BEGIN SOLUTION
    total = sum(mean * size for mean, size in zip(means, sizes) if size > 0)
    return total / sum(sizes)
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("combine", combine)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("combine", combine, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("combine", combine)

# %% [raw]
# # BEGIN QUESTION
# name: allreduce
# points: 1
# check_cell: false

# %% [markdown]
# **2. Allreduce, in place.** `data` is a list of arrays of one shape, one for each device. Write `allreduce(data)`: afterwards
# every one of *these* arrays holds the sum of all. (*From Scratch*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def allreduce(data):
    # BEGIN SOLUTION
    total = sum(data)
    for array in data:
        array[:] = total
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("allreduce", allreduce)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("allreduce", allreduce, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("allreduce", allreduce)

# %% [raw]
# # BEGIN QUESTION
# name: split
# points: 1
# check_cell: false

# %% [markdown]
# **3. Unequal shares.** Write `split(n, weights)`: a list that says how many of `n` images each device gets. Every image
# is handed out once, and each device gets its exact share but for less than one image. (*Unequal Devices*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def split(n, weights):
    # BEGIN SOLUTION
    shares = np.cumsum([0, *weights]) / sum(weights)
    cuts = [round(n * share) for share in shares]
    return [stop - start for start, stop in zip(cuts, cuts[1:])]
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("split", split)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("split", split, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("split", split)

# %% [raw]
# # BEGIN QUESTION
# name: evaluate
# points: 1
# check_cell: false

# %% [markdown]
# **4. Every image once.** A sampler has dealt `n` test images to the devices, and repeated some so that all get equally many.
# `indices[r]` are the images of device `r`, and `correct[r]` says of each whether it was classified correctly. Write
# `evaluate(indices, correct, n)`: the accuracy over the `n` images. (*A Script for torchrun*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def evaluate(indices, correct, n):
    # BEGIN SOLUTION
    right = {}
    for of, whether in zip(indices, correct):
        right.update(zip(of, whether))
    return sum(right.values()) / n
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("evaluate", evaluate)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("evaluate", evaluate, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("evaluate", evaluate)

# %% [raw]
# # BEGIN QUESTION
# name: accumulate
# points: 1
# check_cell: false

# %% [markdown]
# **5. A large batch in small pieces.** `gradient(X, y)` gives the mean gradient over at most `micro` images. Write
# `accumulate(gradient, X, y, micro)`: the mean gradient over all of them. (*Accumulate, Save Messages*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def accumulate(gradient, X, y, micro):
    # BEGIN SOLUTION
    total = 0
    for i in range(0, len(X), micro):
        part = slice(i, i + micro)
        total += len(X[part]) * gradient(X[part], y[part])
    return total / len(X)
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("accumulate", accumulate)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("accumulate", accumulate, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("accumulate", accumulate)

# %% [raw]
# # BEGIN QUESTION
# name: ring
# points: 1
# check_cell: false

# %% [markdown]
# **6. Allreduce by ring.** Every device runs your function at the same time, in a thread of its own. `device.rank` and
# `device.k` say which one of how many it is, `device.send(array, to)` sends a copy, and `device.receive(source)`
# waits for one. Write `allreduce_ring(device, data)`: afterwards `data` holds the sum over all devices, and no device
# has sent more than $2(k-1)/k$ times its array. (*Allreduce: Six Ways*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def allreduce_ring(device, data):
    # BEGIN SOLUTION
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
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("ring", allreduce_ring)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("ring", allreduce_ring, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("ring", allreduce_ring)

# %% [raw]
# # BEGIN QUESTION
# name: look-ahead
# points: 1
# check_cell: false

# %% [markdown]
# **7. Two steps ahead.** The host takes `host[i]` seconds to prepare batch `i`, the device `device[i]` seconds to train on
# it. The host prepares one batch after the other, and at most `ahead` batches that the device is not done
# with. Write `total(host, device, ahead)`: when is the device done with all? (*Nobody Should Wait*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def total(host, device, ahead):
    # BEGIN SOLUTION
    prepared, done = 0, []
    for i in range(len(host)):
        room = done[i - ahead] if i >= ahead else 0
        prepared = max(prepared, room) + host[i]
        done.append(max(prepared, done[-1] if done else 0) + device[i])
    return done[-1]
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("look-ahead", total)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("look-ahead", total, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("look-ahead", total)

# %% [raw]
# # BEGIN QUESTION
# name: warm-up
# points: 1
# check_cell: false

# %% [markdown]
# **8. Warm-up.** The batch is `k` times as large, so the learning rate is `k` times `base` in the end, and `base` in update 0.
# In between, over `warmup` updates, it rises in a straight line. Write `lr_at(update, base, k, warmup)`. (*Batch and
# Learning Rate*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def lr_at(update, base, k, warmup):
    # BEGIN SOLUTION
    done = min(1, update / warmup)
    return base * (1 + (k - 1) * done)
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("warm-up", lr_at)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("warm-up", lr_at, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("warm-up", lr_at)

# %% [raw]
# # BEGIN QUESTION
# name: ring-time
# points: 1
# check_cell: false

# %% [markdown]
# **9. What a ring takes.** A message of `b` bytes takes `latency + b / bandwidth` seconds, and all devices send at the same
# time. Write `seconds(k, num_bytes, latency, bandwidth)`, of an allreduce of `num_bytes` by ring. (*Will a Second GPU Pay?*)

# %% [raw]
# # BEGIN SOLUTION

# %%
def seconds(k, num_bytes, latency, bandwidth):
    # BEGIN SOLUTION
    rounds = 2 * (k - 1)
    return rounds * (latency + num_bytes / k / bandwidth)
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("ring-time", seconds)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("ring-time", seconds, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("ring-time", seconds)

# %% [raw]
# # BEGIN QUESTION
# name: zero
# points: 1
# check_cell: false

# %% [markdown]
# **10. A sharded optimiser.** Gradient descent with momentum, $v \leftarrow 0.9 v + g$ and $w \leftarrow w - \eta v$, where $g$ is
# the *mean* of the devices' gradients. Each device has all of `w` and its own `gradient`, but only one part in $k$ of the
# momentum. Write `step(device, w, momentum, gradient, lr)`, which returns the new `(w, momentum)`. You may use
# `device.reduce_scatter(array)`, this device's part of the sum, and `device.all_gather(part)`. (*ZeRO and FSDP*.)

# %% [raw]
# # BEGIN SOLUTION

# %%
def step(device, w, momentum, gradient, lr):
    # BEGIN SOLUTION
    momentum = 0.9 * momentum + device.reduce_scatter(gradient) / device.k
    part = np.split(w, device.k)[device.rank] - lr * momentum
    return device.all_gather(part), momentum
    # END SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
verdict = exercises.check("zero", step)
assert verdict, verdict

# %%
# HIDDEN
verdict = exercises.check("zero", step, seeds=range(100, 106))
assert verdict, verdict

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
exercises.check("zero", step)
