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
# ### An MLP on k ranks, and back
#
# This answer runs in real processes. Each of $k$ ranks has all of `X` and some units of an MLP: their
# columns of `A` and their rows of `B`, all of them tensors. Write `mlp(X, A, B, dY)`. It returns
# `(Y, dX, dA, dB)`: the output $Y = \mathrm{ReLU}(XA)B$ of the *whole* MLP, and the gradients, when
# `dY` is that of $Y$. `Y` and `dX` are whole and equal on all ranks, `dA` and `dB` are those of this
# rank's part. Write the backward pass yourself, without autograd: `f` and `g` are one line each. The
# function travels to the processes alone, so it imports what it needs.

# %%
def mlp(X, A, B, dY):
    import torch
    from torch import distributed as dist

    H = torch.relu(X @ A)
    Y = H @ B
    dist.all_reduce(Y)
    dH = dY @ B.T * (H > 0)
    dX = dH @ A.T
    dist.all_reduce(dX)
    return Y, dX, X.T @ dH, H.T @ dY

# %% [markdown] exercise="row-bias"
# ### A layer that is right on one device
#
# A dense layer $XW + b$ is cut by rows: each rank has some columns of `X` and the same rows of `W`,
# and all of `b`. `layer(X, W, b)` should return the whole output on each rank. The version below runs
# in real processes. With one of them it is right.

# %% given="bias"
def layer(X, W, b):
    from torch import distributed as dist

    output = X @ W + b
    dist.all_reduce(output)
    return output

# %%
def layer(X, W, b):
    from torch import distributed as dist

    output = X @ W
    dist.all_reduce(output)
    return output + b

# %% [markdown] exercise="norm-gain"
# ### Whose gradient is it?
#
# With sequence parallelism each rank has some *tokens*, the rows of `X`, and multiplies them with a
# gain that all ranks have alike. `gain_gradient(X, dY)` should return the gradient of the gain, with
# which all ranks then make the same update. The loss is the sum over all tokens. The version below
# runs in real processes, and an allreduce is missing. With one process it is right.

# %% given="own"
def gain_gradient(X, dY):
    return (X * dY).sum(0)

# %%
def gain_gradient(X, dY):
    from torch import distributed as dist

    gradient = (X * dY).sum(0)
    dist.all_reduce(gradient)
    return gradient

# %% [markdown] exercise="target-score"
# ### The score of the target
#
# This answer runs in four processes. Each has some columns of the scores of all tokens, `scores`, the
# first symbols on rank 0, as many on each rank, and the targets of all tokens, `y`. Write
# `of_target(scores, y)`, which returns on every rank each token's score of its target: a vector of the
# length of `y`. One sum over the ranks of one number a token is enough. The function travels to the
# processes alone, so it imports what it needs.

# %%
def of_target(scores, y):
    import torch
    from torch import distributed as dist

    column = y - dist.get_rank() * scores.shape[1]
    is_mine = (column >= 0) & (column < scores.shape[1])
    target = torch.zeros(len(y), dtype=scores.dtype)
    target[is_mine] = scores[is_mine, column[is_mine]]
    dist.all_reduce(target)
    return target

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
# width, k)`: the bytes that a device sends in a step, if each allreduce is a ring. Rings of four
# processes are counted beside it.

# %%
def sent(blocks, batch, tokens, width, k):
    activations = 2 * batch * tokens * width
    return 4 * blocks * activations * 2 * (k - 1) / k

# %%
if exercises.check("tp-bytes", sent):
    display(eight_gpus.happened(sent(32, 2, 4096, 4096, 8) / 1e9, "modelled"))

# %% [markdown] pages=["beyond/pipelines"]
# ## Pipelines

# %% [markdown] exercise="one-f-one-b"
# ### The order of a rank
#
# Write `order(rank, p, m)` for 1F1B: the list of what rank `rank` of `p` does in a step with `m`
# micro-batches, as pairs `("F", i)` for the forward pass of micro-batch `i` and `("B", i)` for its
# backward pass. The rank keeps as few micro-batches as it can without waiting longer. Then four
# processes train in your order.

# %%
def order(rank, p, m):
    ahead = min(p - 1 - rank, m)
    operations = [("F", i) for i in range(ahead)]
    for i in range(m):
        if ahead + i < m:
            operations.append(("F", ahead + i))
        operations.append(("B", i))
    return operations

# %% [markdown] exercise="micro-mean"
# ### The gradient of the whole batch
#
# This answer runs in two processes, two stages of $y \approx X W v$, GPipe's order. Rank 0 has `data`
# of shape (micro-batches, examples, features), the inputs, and $W$; rank 1 has the targets, (micro-batches,
# examples), and $v$. `step(data, weights)` should return on each rank the gradient of its weights for the mean
# of the squared errors of *all* examples.

# %% given="sum"
def step(data, weights):
    import torch
    from torch import distributed as dist

    gradient = torch.zeros_like(weights)
    if dist.get_rank() == 0:
        for X in data:
            dist.send(X @ weights, 1)
        for X in data:
            back = (X @ weights).clone()
            dist.recv(back, 1)
            gradient += X.T @ back
        return gradient
    errors, arrived = [], []
    for y in data:
        H = torch.zeros(len(y), len(weights), dtype=y.dtype)
        dist.recv(H, 0)
        arrived.append(H)
        errors.append(2 * (H @ weights - y) / len(y))
    for H, error in zip(arrived, errors):
        gradient += H.T @ error
        dist.send(torch.outer(error, weights), 0)
    return gradient

# %%
def step(data, weights):
    import torch
    from torch import distributed as dist

    gradient = torch.zeros_like(weights)
    if dist.get_rank() == 0:
        for X in data:
            dist.send(X @ weights, 1)
        for X in data:
            back = (X @ weights).clone()
            dist.recv(back, 1)
            gradient += X.T @ back
        return gradient
    errors, arrived = [], []
    for y in data:
        H = torch.zeros(len(y), len(weights), dtype=y.dtype)
        dist.recv(H, 0)
        arrived.append(H)
        errors.append(2 * (H @ weights - y) / data.numel())
    for H, error in zip(arrived, errors):
        gradient += H.T @ error
        dist.send(torch.outer(error, weights), 0)
    return gradient

# %% [markdown] exercise="both-send"
# ### It never ends
#
# The same two stages, in the order of 1F1B. Rank 0 is one micro-batch ahead, and rank 1 sends each gradient
# at once. The gradients would be right, if it came to its end.

# %% given="deadlock"
def step(data, weights):
    import torch
    from torch import distributed as dist

    gradient = torch.zeros_like(weights)
    if dist.get_rank() == 0:
        for i in range(len(data) + 1):
            if i < len(data):
                dist.send(data[i] @ weights, 1)
            if i > 0:
                back = torch.zeros(data.shape[1], weights.shape[1], dtype=data.dtype)
                dist.recv(back, 1)
                gradient += data[i - 1].T @ back
        return gradient
    for y in data:
        H = torch.zeros(len(y), len(weights), dtype=y.dtype)
        dist.recv(H, 0)
        error = 2 * (H @ weights - y) / data.numel()
        gradient += H.T @ error
        dist.send(torch.outer(error, weights), 0)
    return gradient

# %%
def step(data, weights):
    import torch
    from torch import distributed as dist

    gradient, sent = torch.zeros_like(weights), []
    if dist.get_rank() == 0:
        for i in range(len(data) + 1):
            if i < len(data):
                H = data[i] @ weights
                sent.append((dist.isend(H, 1), H))
            if i > 0:
                back = torch.zeros(data.shape[1], weights.shape[1], dtype=data.dtype)
                dist.recv(back, 1)
                gradient += data[i - 1].T @ back
    else:
        for y in data:
            H = torch.zeros(len(y), len(weights), dtype=y.dtype)
            dist.recv(H, 0)
            error = 2 * (H @ weights - y) / data.numel()
            gradient += H.T @ error
            back = torch.outer(error, weights)
            sent.append((dist.isend(back, 0), back))
    for work, _ in sent:
        work.wait()
    return gradient

# %% [markdown]
# ### Predict first
#
# Lock a guess; the cell under the next exercise computes it with your function.

# %%
from d2lmgpu.predictions import Prediction

sixteen_stages = Prediction(
    "exercises/bubble",
    "A pipeline of 16 ranks, one stage each, and 16 micro-batches. What "
    "percentage of the time is a rank idle?",
    "%",
    low=0,
    high=100,
)
sixteen_stages

# %% [markdown] exercise="bubble" kind="predict"
# ### How much is idle?
#
# A pipeline of `p` ranks with `v` stages each, all equally long, interleaved if `v` is more than 1, and `m`
# micro-batches: a multiple of `p` if `v` is more than 1. Messages take no time. Write `idle(p, m, v)`: the share of a step, from 0 to 1, in which a
# rank computes nothing.

# %%
def idle(p, m, v):
    return (p - 1) / (m * v + p - 1)

# %%
if exercises.check("bubble", idle):
    display(sixteen_stages.happened(100 * idle(16, 16, 1), "modelled"))
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
    total, held = x.clone(), x
    for step in range(1, n):
        arriving = torch.empty_like(held)
        sent = dist.isend(held, (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        sent.wait()
        held, source = arriving, (rank + step) % n
        if source < rank:
            total += held
    return total

# %%
def seen(x):
    import torch
    from torch import distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    total, held = x.clone(), x
    for step in range(1, n):
        arriving = torch.empty_like(held)
        sent = dist.isend(held, (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        sent.wait()
        held, source = arriving, (rank - step) % n
        if source < rank:
            total += held
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

# %% [markdown] pages=["beyond/all-at-once"]
# ## All at Once

# %% [markdown] exercise="mesh-rows"
# ### Who holds which rows?
#
# `dp` times `tp` devices stand in a mesh with the sides `("dp", "tp")`. A matrix of `rows` rows is cut as
# on the page, first in `tp` parts by tensor parallelism, then each of them by `fully_shard` over
# `mesh["dp"]`. Everything divides. Write `held(rank, dp, tp, rows)`, which returns the first and the
# last row that a rank holds. It is compared with what PyTorch leaves to each of four processes.

# %%
def held(rank, dp, tp, rows):
    i, j = divmod(rank, tp)
    size = rows // (dp * tp)
    first = (j * dp + i) * size
    return first, first + size - 1

# %% [markdown] exercise="mesh-group"
# ### The mean over whom?
#
# This answer runs in four processes, two replicas of two devices each: the ranks 0 and 1 are one
# replica, which shares each matrix, 2 and 3 the other. `cut` is the gradient of this device's part of a
# matrix, `norm` that of a norm, which the two devices of a replica have alike. After
# `average(cut, norm)` both should hold the mean over the replicas. The version below leaves the norm
# right. Mend it. The function travels to the processes alone, so it imports what it needs.

# %% given="world"
def average(cut, norm):
    from torch import distributed as dist

    for gradient in (cut, norm):
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()

# %%
def average(cut, norm):
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for gradient in (cut, norm):
        dist.all_reduce(gradient, group=mesh.get_group("dp"))
        gradient /= 2

# %% [markdown] exercise="plan-keys"
# ### A plan with a key too many
#
# A key of a plan that stands for no layer is passed over with a warning. `keys` are those of a plan, as
# `"blocks.*.attn.q"`, and `layers` the names of all modules of a network, as `"blocks.0.attn.q"`. A star
# stands for anything within one part of a name, but for no dot. Write `cut(keys, layers)`, which returns
# a list: how many layers each key stands for. Then a 0 is a misspelt key. PyTorch cuts such a network
# in two processes, and has to find as many.

# %%
def cut(keys, layers):
    from fnmatch import fnmatchcase

    def same(key, layer):
        parts, names = key.split("."), layer.split(".")
        return len(parts) == len(names) and all(map(fnmatchcase, names, parts))

    return [sum(same(key, layer) for layer in layers) for key in keys]

# %% [markdown] exercise="mesh-bytes" kind="predict"
# ### What a step of HSDP sends
#
# A network of `blocks` blocks with `block` parameters each, and `ends` parameters in all that is not in
# a block, trains with `fully_shard` on a mesh of `dp` copies over `fsdp` devices each, as on the page.
# Write `num_bytes(blocks, block, ends, dp, fsdp, itemsize)`: of all collectives of a step in which a
# device takes part, the bytes of the larger side, what it puts in or what comes out. A number has
# `itemsize` bytes everywhere; `dp` and `fsdp` are at least 2 and divide everything. A step of PyTorch's
# in four processes is counted beside it.

# %%
def num_bytes(blocks, block, ends, dp, fsdp, itemsize):
    parameters = blocks * block + ends
    gathered = parameters + blocks * block
    return itemsize * (gathered + parameters + parameters // fsdp)
