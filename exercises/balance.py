# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Balance and Predict

# %% [markdown] pages=["scaling/unequal-devices"]
# ## Unequal Devices: a Fast and a Slow GPU

# %% [markdown] exercise="split"
# ### Unequal shares
#
# Write `split(n, weights)`: a list of whole numbers that says how many of `n` images each device
# gets. Every image is handed out once, and each device gets its exact share, `n` times its weight
# over the sum of the weights, but for one image at most. A weight may be 0.

# %%
def split(n, weights):
    shares = np.cumsum([0, *weights]) / sum(weights)
    cuts = [round(n * share) for share in shares]
    return [stop - start for start, stop in zip(cuts, cuts[1:])]

# %% [markdown] exercise="balance"
# ### Weights from times
#
# A step was timed: device `i` had `sizes[i]` images and took `seconds[i]`. `weights` should return
# a list of shares, with the sum 1, in proportion to the speeds of the devices. The first time, when
# all had equally many images, it was right.

# %% given="size"
def weights(sizes, seconds):
    speeds = [1 / s for s in seconds]
    return [speed / sum(speeds) for speed in speeds]

# %%
def weights(sizes, seconds):
    speeds = [n / s for n, s in zip(sizes, seconds)]
    return [speed / sum(speeds) for speed in speeds]

# %% [markdown] exercise="worth" kind="predict"
# ### Is the second device worth it?
#
# *Dive into Deep Learning* asks whether to use GPUs and the CPU at the same time. Device `i`
# computes `speeds[i]` images a second. If two or more work on a batch of `n` images, each takes a
# part in proportion to its speed (fractions of an image are allowed), and the step takes `exchange`
# seconds more. You may leave devices out. Write `best_step(n, speeds, exchange)`: the shortest time
# of a step.

# %%
def best_step(n, speeds, exchange):
    alone = n / max(speeds)
    together = n / sum(speeds) + exchange
    return min(alone, together)

# %% [markdown] pages=["scaling/cost-model"]
# ## Cost Model: Will a Second GPU Pay?

# %% [markdown] exercise="ring-time"
# ### What a ring takes
#
# A message of `b` bytes takes `latency + b / bandwidth` seconds, and all devices send at the same
# time. Write `seconds(k, num_bytes, latency, bandwidth)`, of an allreduce of `num_bytes` by ring
# over `k` devices.

# %%
def seconds(k, num_bytes, latency, bandwidth):
    rounds = 2 * (k - 1)
    return rounds * (latency + num_bytes / k / bandwidth)

# %% [markdown] exercise="step" kind="predict"
# ### A step, by the cost model
#
# One process drives `k` devices. In each step it takes `load` seconds to load the batch, and
# `issue` seconds for *each* device to hand out the work. The devices together take `compute / k`
# seconds, and `exchange` seconds more if they are more than one. The host and the devices work at
# the same time, so the longer one counts. But if the loop `waits` for the devices after every
# batch, nothing hides the loading: it comes on top. Write `step_seconds(k, load, issue, compute,
# exchange, waits)`.

# %%
def step_seconds(k, load, issue, compute, exchange, waits):
    devices = compute / k + (exchange if k > 1 else 0)
    if waits:
        return load + max(k * issue, devices)
    return max(load + k * issue, devices)

# %% [markdown] exercise="bus"
# ### Bandwidth of what?
#
# An allreduce by ring of an array of `num_bytes` over `k` devices took `seconds`. `bandwidth`
# should return the bytes a second that each device has sent, which nccl-tests calls *busbw*, bus
# bandwidth. What it returns falls with every device that joins, on the same links.

# %% given="count"
def bandwidth(k, num_bytes, seconds):
    return num_bytes / seconds

# %%
def bandwidth(k, num_bytes, seconds):
    sent = 2 * (k - 1) / k * num_bytes
    return sent / seconds

# %% [markdown]
# ### Predict first
#
# In each step each of 256 devices is late by a second with a probability of 1 %, and then all wait
# for it. Lock a guess, then run the cell below it, which simulates 10,000 steps.

# %%
from d2lmgpu.predictions import Prediction

wait = Prediction("exercises/late", "How long do 256 devices wait in a step, on average?", "s", low=0, high=1)
wait

# %%
late = np.random.default_rng(0).random((10000, 256)) < 0.01
wait.happened(float(late.any(axis=1).mean()), "simulated")

# %% [markdown] exercise="late" kind="predict"
# ### Waiting for the slowest
#
# Now for any number of devices. In each step each of `k` devices is late by `delay` seconds with
# probability `p`, independently of the others. All wait for the slowest. Write `mean_wait(k, p,
# delay)`.

# %%
def mean_wait(k, p, delay):
    return delay * (1 - (1 - p) ** k)
