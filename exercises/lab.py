# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Laboratory

# %% [markdown] pages=["lab/training-lab"]
# ## The Training Lab

# %% [markdown] exercise="speedup"
# ### Speedup and efficiency
#
# The same training was timed several times on one device and several times on `k` devices: `one`
# and `many` are lists of seconds. A single slow run should not count. Write `speedup(one, many,
# k)`: the pair `(speedup, efficiency)`, from the medians.

# %%
def speedup(one, many, k):
    times = np.median(one) / np.median(many)
    return times, times / k

# %% [markdown] exercise="rate"
# ### The mean of rates
#
# `images[i]` and `seconds[i]` say how many images epoch `i` had and how long it took. The first
# epoch is there to warm up and does not count. `rate` should return the images a second over all
# the others. What it returns is too high, and more so if the times vary.

# %% given="mean-of-rates"
def rate(images, seconds):
    rates = [n / s for n, s in zip(images[1:], seconds[1:])]
    return sum(rates) / len(rates)

# %%
def rate(images, seconds):
    return sum(images[1:]) / sum(seconds[1:])

# %% [markdown] exercise="smallest-batch" kind="predict"
# ### From which batch on does it pay?
#
# A step on a batch of `b` images takes `fixed + per_image * b` seconds on one device, and `fixed +
# per_image * b / k` on `k` of them. The efficiency is the speedup divided by `k`. Write
# `smallest_batch(fixed, per_image, k, efficiency)`: the smallest batch that reaches the efficiency
# and is a multiple of `k`.

# %%
def smallest_batch(fixed, per_image, k, efficiency):
    b = fixed * (k * efficiency - 1) / (per_image * (1 - efficiency))
    return k * int(np.ceil(b / k))
