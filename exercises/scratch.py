# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # From Scratch

# %% [markdown] pages=["scratch/pytorch", "scratch/mxnet"]
# ## From Scratch, in Both Frameworks

# %% [markdown] exercise="allreduce"
# ### Allreduce, in place
#
# `data` is a list of arrays of one shape, one for each device. Write `allreduce(data)`: afterwards
# every one of *these* arrays holds the sum of all. It returns nothing.

# %%
def allreduce(data):
    total = sum(data)
    for array in data:
        array[:] = total

# %% [markdown] exercise="owners"
# ### Allreduce with the work shared
#
# The chapter's `allreduce` adds everything up on one device. Share that work, as an exercise in
# *Dive into Deep Learning* asks: the `j`-th parameter is added up on device `j % k`. Every device
# runs your function at the same time, in a thread of its own. `device.rank` and `device.k` say
# which one of how many it is, `device.send(array, to)` sends a copy and does not wait,
# `device.receive(source)` waits for one and returns it. Write `allreduce_owners(device, params)`:
# `params` is this device's list of arrays; afterwards each of them holds the sum over all devices.
# The number of arrays is a multiple of `k`.

# %%
def allreduce_owners(device, params):
    k = device.k
    others = [rank for rank in range(k) if rank != device.rank]
    for j, param in enumerate(params):
        if j % k != device.rank:
            device.send(param, j % k)
    for param in params[device.rank :: k]:
        for rank in others:
            param += device.receive(rank)
        for rank in others:
            device.send(param, rank)
    for j, param in enumerate(params):
        if j % k != device.rank:
            param[:] = device.receive(j % k)

# %% [markdown] exercise="stale"
# ### The device without images
#
# Each device keeps an array for its gradient from batch to batch: `grads[i]` is that of device `i`.
# `shards[i]` are its images and targets of this batch, `(X, y)`; the last batch may leave a device
# without any. `update` writes the new gradients and changes `w` in place. After a batch in which a
# device had no images, the weights are wrong.

# %% given="stale"
def update(w, grads, shards, lr):
    for grad, (X, y) in zip(grads, shards):
        if len(X) > 0:
            grad[:] = X.T @ (X @ w - y)
    n = sum(len(X) for X, y in shards)
    w -= lr * sum(grads) / n

# %%
def update(w, grads, shards, lr):
    for grad, (X, y) in zip(grads, shards):
        grad[:] = 0
        if len(X) > 0:
            grad[:] = X.T @ (X @ w - y)
    n = sum(len(X) for X, y in shards)
    w -= lr * sum(grads) / n

# %% [markdown] exercise="sgd"
# ### An update that changes nothing
#
# `sgd` takes a device's list of parameters and the list of their gradients, which are sums over
# `batch_size` images, and makes one step. It raises no error, and the loss does not fall.

# %% given="rebinding"
def sgd(params, grads, lr, batch_size):
    for param, grad in zip(params, grads):
        param = param - lr * grad / batch_size

# %%
def sgd(params, grads, lr, batch_size):
    for param, grad in zip(params, grads):
        param -= lr * grad / batch_size
