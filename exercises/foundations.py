# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Foundations

# %% [markdown] pages=["foundations/data-parallelism"]
# ## Data Parallelism in NumPy

# %% [markdown] exercise="combine"
# ### The mean of means
#
# Each device has computed the mean gradient of its shard. Write `combine(means, sizes)`, which
# returns the mean gradient of the whole batch. `means` is a list of arrays, `sizes` says how many
# images each device had. A device without images has size 0, and its mean is NaN.

# %%
def combine(means, sizes):
    total = sum(mean * size for mean, size in zip(means, sizes) if size > 0)
    return total / sum(sizes)

# %% [markdown] exercise="replicate"
# ### Replicas that know of each other
#
# `replicate(params, k)` returns a list with one entry for each of `k` devices: a list of copies of
# the arrays in `params`. With the version below, an update of one device changes the others.

# %% given="aliasing"
def replicate(params, k):
    return [[param for param in params] for device in range(k)]

# %%
def replicate(params, k):
    return [[param.copy() for param in params] for device in range(k)]

# %% [markdown]
# ### Predict first
#
# Eight devices add up an array. In the *naive* way all others send theirs to device 0, which adds
# them and sends the sum back to each. In a *ring* each sends an eighth of the array at a time to
# its neighbour. Lock a guess, then run the cell below it.

# %%
from d2lmgpu.collectives.schedules import plan
from d2lmgpu.predictions import Prediction

port = Prediction("exercises/port", "How many times as many bytes does device 0 send in the naive "
                  "way as in the ring, with 8 devices?", "times", low=0, high=16)
port

# %%
naive, ring = (max(plan(name, 8, 8000).bytes_sent()) for name in ("naive", "ring"))
port.happened(naive / ring, "counted")

# %% [markdown] exercise="naive-port" kind="predict"
# ### The bottleneck of the naive way
#
# Now for any number of devices. Each of `k` devices has an array of `num_bytes`. All but device 0
# send theirs to device 0, which adds them up and sends the sum to each of the others. Write
# `port_of_0(k, num_bytes)`: how many bytes device 0 receives and sends, together.

# %%
def port_of_0(k, num_bytes):
    received = (k - 1) * num_bytes
    sent = (k - 1) * num_bytes
    return received + sent
