# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Beyond Data Parallelism

# %% [markdown] pages=["beyond/gpt"]
# ## A GPT to Take Apart

# %% [markdown] exercise="attention"
# ### Attention by hand
#
# `q`, `k` and `v` have one row a token and `width` columns, a part of them for each of `heads` heads.
# In a head a token's query is multiplied with the keys of itself and of all tokens before it, and
# the products are divided by the root of the width of *a head*. Their softmax says how much it takes
# of the values of these tokens. Write `attention(q, k, v, heads)`, which returns an array of the
# shape of `v`.

# %%
def attention(q, k, v, heads):
    tokens, width = q.shape
    outputs = []
    for Q, K, V in zip(*(np.split(t, heads, axis=1) for t in (q, k, v))):
        scores = Q @ K.T / np.sqrt(width // heads)
        scores[np.triu_indices(tokens, 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        outputs.append(weights / weights.sum(axis=1, keepdims=True) @ V)
    return np.concatenate(outputs, axis=1)

# %% [markdown] exercise="gpt-parameters" kind="predict"
# ### The parameters of a GPT
#
# Write `parameters(width, blocks, symbols, tokens)` for the network of the page: an embedding of the
# symbols and one of the positions; in each block q, k, v and o, two layers of the MLP (four times as
# wide between them), all with biases, and two norms, each with a gain and a bias for each number of a
# token; at the end a norm and a head without biases. Nothing is shared.

# %%
def parameters(width, blocks, symbols, tokens):
    attention = 4 * (width * width + width)
    mlp = width * 4 * width + 4 * width + 4 * width * width + width
    norm = 2 * width
    block = attention + mlp + 2 * norm
    return symbols * width + tokens * width + blocks * block + norm + width * symbols

# %% [markdown] exercise="mfu" kind="predict"
# ### How busy is the GPU?
#
# A GPT with `parameters` in its matrices, `blocks` blocks, `width` numbers a token and sequences of
# `tokens` tokens trains on `rate` tokens a second, on a device whose peak is `peak` operations a
# second. Write `mfu(parameters, blocks, width, tokens, rate, peak)`, the model FLOPs utilisation:
# forward and backward pass, with the two products of attention, which are counted as if nothing were
# masked.

# %%
def mfu(parameters, blocks, width, tokens, rate, peak):
    matrices = 3 * 2 * parameters
    attention = 3 * 2 * (2 * tokens * width) * blocks
    return (matrices + attention) * rate / peak

# %% [markdown] pages=["beyond/tensor-parallel"]
# ## Tensor Parallelism

# %% [markdown] exercise="f-and-g"
# ### An MLP on k devices, and back
#
# Each of $k$ devices has all of `X` and some units of an MLP: their columns of `A` and their rows of
# `B`. Write `mlp(device, X, A, B, dY)`. It returns `(Y, dX, dA, dB)`: the output
# $Y = \mathrm{ReLU}(XA)B$ of the *whole* MLP, and the gradients, when `dY` is that of $Y$. `Y` and
# `dX` are whole and equal on all devices, `dA` and `dB` are those of this device's part. You may use
# `device.k` and `device.all_gather(array)`, which returns the arrays of all devices, one below the
# other.

# %%
def mlp(device, X, A, B, dY):
    def all_reduce(data):
        return device.all_gather(data).reshape(device.k, *data.shape).sum(axis=0)

    H = np.maximum(X @ A, 0)
    Y = all_reduce(H @ B)
    dH = dY @ B.T * (H > 0)
    return Y, all_reduce(dH @ A.T), X.T @ dH, H.T @ dY

# %% [markdown] exercise="row-bias"
# ### A layer that is right on one device
#
# A dense layer $XW + b$ is cut by rows: each device has some columns of `X` and the same rows of `W`,
# and all of `b`. `layer(device, X, W, b)` should return the whole output on each device. With one
# device it does. `device.all_gather(array)` returns the arrays of all devices, one below the other.

# %% given="bias"
def layer(device, X, W, b):
    term = X @ W + b
    terms = device.all_gather(term).reshape(device.k, *term.shape)
    return terms.sum(axis=0)

# %%
def layer(device, X, W, b):
    term = X @ W
    terms = device.all_gather(term).reshape(device.k, *term.shape)
    return terms.sum(axis=0) + b

# %% [markdown] exercise="norm-gain"
# ### Whose gradient is it?
#
# With sequence parallelism each device has some *tokens*, `X`, and multiplies them with a gain that
# all devices have alike. `gain_gradient(device, X, dY)` should return the gradient of the gain, with
# which all devices then make the same update. The loss is the sum over all tokens. With one device
# the version below is right.

# %% given="own"
def gain_gradient(device, X, dY):
    return (X * dY).sum(axis=0)

# %%
def gain_gradient(device, X, dY):
    own = (X * dY).sum(axis=0)
    return device.all_gather(own).reshape(device.k, -1).sum(axis=0)

# %% [markdown]
# ### Predict first
#
# Lock a guess; the cell under the next exercise computes it with your function.

# %%
from d2lmgpu.predictions import Prediction

eight_gpus = Prediction("exercises/tp-bytes", "Tensor parallelism over 8 GPUs: 32 blocks, a width of 4,096, a batch "
                        "of 2 sequences of 4,096 tokens, 16 bits. How many GB does each GPU send in a step?",
                        "GB", low=0, high=100)
eight_gpus

# %% [markdown] exercise="tp-bytes" kind="predict"
# ### What a step sends
#
# A GPT of `blocks` blocks trains with tensor parallelism on `k` devices, as on the page: two
# allreduces a block forward and two backward, each of the activations of all tokens, `batch`
# sequences of `tokens` tokens with `width` numbers of 16 bits each. Write `sent(blocks, batch, tokens,
# width, k)`: the bytes that a device sends in a step, if each allreduce is a ring.

# %%
def sent(blocks, batch, tokens, width, k):
    activations = 2 * batch * tokens * width
    return 4 * blocks * activations * 2 * (k - 1) / k

# %%
if exercises.check("tp-bytes", sent):
    display(eight_gpus.happened(sent(32, 2, 4096, 4096, 8) / 1e9, "modelled"))

# %% [markdown] pages=["beyond/long-sequences"]
# ## Long Sequences

# %% [markdown] exercise="two-blocks"
# ### Attention of two blocks
#
# The same queries have met two blocks of keys. For each query and block there is an output, the mean
# of the block's values with the weights of a softmax over *its* scores, and a total, the logarithm of
# the sum of $e^{\text{score}}$ over its keys. Write `combine(output_1, total_1, output_2, total_2)`,
# which returns the output and the total for both blocks together. Outputs have a row for each query,
# totals a number. Scores may be as large as 2,000 or as small as −2,000; a block without keys has an
# output of 0 and a total of −∞.

# %%
def combine(output_1, total_1, output_2, total_2):
    total = np.logaddexp(total_1, total_2)
    part_1, part_2 = np.exp(total_1 - total), np.exp(total_2 - total)
    return part_1[:, None] * output_1 + part_2[:, None] * output_2, total

# %% [markdown] exercise="whose-keys"
# ### Whose keys are these?
#
# Each process has one row, the tensor `x`. `seen(x)` should return the sum of the rows of this rank and
# of all ranks before it, as a causal mask has it. The rows travel around a ring, as keys do. The version
# below runs in real processes. With two of them it is right.

# %% given="source"
def seen(x):
    import torch
    from torch import distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    total, here = x.clone(), x
    for step in range(1, n):
        arriving = torch.empty_like(here)
        sent = dist.isend(here, (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        sent.wait()
        here, source = arriving, (rank + step) % n
        if source < rank:
            total += here
    return total

# %%
def seen(x):
    import torch
    from torch import distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    total, here = x.clone(), x
    for step in range(1, n):
        arriving = torch.empty_like(here)
        sent = dist.isend(here, (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        sent.wait()
        here, source = arriving, (rank - step) % n
        if source < rank:
            total += here
    return total

# %% [markdown] exercise="ring-steps" kind="predict"
# ### All wait for the busiest
#
# A causal attention runs on a ring of `n` ranks with two chunks each. In each of the `n` rounds a rank
# computes those pairs of its chunks of queries with the chunks of keys that are there which the mask
# does not hide as a whole, and the round ends when all have done so. Write `steps(n, zigzag)`: for how
# many pairs, one after the other, does the whole take? With `zigzag` rank $r$ has the chunks $r$ and
# $2n - 1 - r$, else $2r$ and $2r + 1$.

# %%
def steps(n, zigzag):
    first_round = 3
    return first_round + (n - 1) * (2 if zigzag else 4)

# %% [markdown] pages=["beyond/experts"]
# ## Experts

# %% [markdown] exercise="there-and-back"
# ### To the expert and back
#
# Each device has some tokens, the rows of `X`, and one expert, the function `expert(rows)`. Token `i`
# goes to the expert of device `chosen[i]`. Write `layer(device, X, chosen, expert)`: what the experts
# make of the tokens, in the order of `X`. A token should travel to its expert and back, and to nobody
# else. There are `device.rank`, `device.k`, `device.send(array, to)`, which does not wait, and
# `device.receive(source)`, which does. An array may have no rows.

# %%
def layer(device, X, chosen, expert):
    Y = np.empty_like(X)
    others = [rank for rank in range(device.k) if rank != device.rank]
    for rank in others:
        device.send(X[chosen == rank], rank)
    Y[chosen == device.rank] = expert(X[chosen == device.rank])
    for rank in others:
        device.send(expert(device.receive(rank)), rank)
    for rank in others:
        Y[chosen == rank] = device.receive(rank)
    return Y

# %% [markdown] exercise="return-order"
# ### Back in their places
#
# Each process has tokens, the rows of the tensor `x`, and one expert: that of rank $r$ multiplies with
# $r + 1$. `layer(x, chosen)` sends each token to the rank that `chosen` says, and should return the
# results in the order of `x`. The version below runs in real processes. If the tokens are sorted by
# their experts already, it is right.

# %% given="order"
def layer(x, chosen):
    import torch
    from torch import distributed as dist

    order = chosen.argsort(stable=True)
    sends = chosen.bincount(minlength=dist.get_world_size())
    receives = torch.empty_like(sends)
    dist.all_to_all_single(receives, sends)
    sends, receives = sends.tolist(), receives.tolist()
    arrived = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(arrived, x[order], receives, sends)
    results, back = arrived * (dist.get_rank() + 1), torch.empty_like(x)
    dist.all_to_all_single(back, results, sends, receives)
    return back[order]

# %%
def layer(x, chosen):
    import torch
    from torch import distributed as dist

    order = chosen.argsort(stable=True)
    sends = chosen.bincount(minlength=dist.get_world_size())
    receives = torch.empty_like(sends)
    dist.all_to_all_single(receives, sends)
    sends, receives = sends.tolist(), receives.tolist()
    arrived = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(arrived, x[order], receives, sends)
    results, back = arrived * (dist.get_rank() + 1), torch.empty_like(x)
    dist.all_to_all_single(back, results, sends, receives)
    return back[order.argsort()]

# %% [markdown] exercise="dropped" kind="predict"
# ### No place left
#
# Expert `i` is chosen by `load[i]` tokens. Each takes at most its capacity: the even share of all tokens
# times `factor`, rounded down. Write `dropped(load, factor)`: how many tokens find no place.

# %%
def dropped(load, factor):
    capacity = int(factor * sum(load) / len(load))
    return sum(max(0, tokens - capacity) for tokens in load)
