# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Diagnosis

# %% [markdown] pages=["diagnosis/this-machine"]
# ## Is This Machine All Right?

# %% [markdown] exercise="bus-bandwidth"
# ### Bus bandwidth
#
# Write `bus_bandwidth(num_bytes, seconds, k, collective)`: what a link has carried, in bytes a
# second, as nccl-tests counts it. `k` devices took part, the whole array has `num_bytes`, and the
# collective is `"allreduce"`, `"reduce-scatter"`, `"all-gather"` or `"broadcast"`.

# %%
def bus_bandwidth(num_bytes, seconds, k, collective):
    factors = {"allreduce": 2 * (k - 1) / k, "reduce-scatter": (k - 1) / k,
               "all-gather": (k - 1) / k, "broadcast": 1}
    return num_bytes / seconds * factors[collective]

# %% [markdown] exercise="slow-rank"
# ### Whose slot is it?
#
# `rates[i][j]` is the bandwidth of the link between the ranks `i` and `j`, in GB/s, and 0 where `i`
# is `j`. One rank has a bad slot: all its links carry less than half of the fastest link's
# bandwidth. A single link between two others is slow, too. Write `slow_rank(rates)`: the rank with
# the bad slot.

# %%
def slow_rank(rates):
    limit = max(max(row) for row in rates) / 2
    slow = [all(rate < limit for rate in row) for row in rates]
    return slow.index(True)

# %% [markdown] exercise="by-the-host"
# ### Through the host's memory
#
# `lines` are lines of NCCL's log, each of which ends with the way that messages take, as
# `via P2P/CUMEM`, `via SHM/direct/direct`, `via NET/IB/2/GDRDMA` or `via NET/Socket/0`. `by_the_host`
# should count those that go through the host's memory. What it returns is too large.

# %% given="gdrdma"
def by_the_host(lines):
    return sum("via SHM" in line or "via NET" in line for line in lines)

# %%
def by_the_host(lines):
    def by_host(line):
        return "via SHM" in line or "via NET" in line and "GDRDMA" not in line

    return sum(map(by_host, lines))

# %% [markdown] pages=["diagnosis/profile"]
# ## Where Does the Time Go?

# %% [markdown] exercise="workers"
# ### How many workers?
#
# A rank needs `load` milliseconds to make a batch ready, and `train` milliseconds to train on it. `ranks`
# of them share a machine with `cores` cores. Each rank takes one core, and so does each worker. Write
# `workers(load, train, ranks, cores)`: how many workers a rank needs so that it does not wait for its
# batches, but no more than there are cores for. All numbers are whole, and all ranks have as many workers.

# %%
def workers(load, train, ranks, cores):
    needed = -(-load // train)
    return min(needed, (cores - ranks) // ranks)

# %% [markdown] exercise="shown" kind="predict"
# ### What the allreduce shows
#
# In each step rank `r` works for `work[r]` seconds and calls the allreduce then. Once the last rank has
# called it, it takes `exchange` seconds on all ranks. Write `shown(work, exchange)`: a list with the
# seconds for which the trace of each rank shows the allreduce.

# %%
def shown(work, exchange):
    last = max(work)
    return [last - own + exchange for own in work]

# %% [markdown] exercise="slowest"
# ### Who is the slow one?
#
# `waits[r][i]` says how many seconds rank `r` waited for the others in step `i`. `slowest` should
# return the rank for which the others wait. What it returns is a rank that is fast.

# %% given="waits"
def slowest(waits):
    totals = np.sum(waits, axis=1)
    return int(np.argmax(totals))

# %%
def slowest(waits):
    totals = np.sum(waits, axis=1)
    return int(np.argmin(totals))

# %% [markdown] pages=["diagnosis/traces"]
# ## Reading a Trace

# %% [markdown] exercise="self-time"
# ### Self times
#
# `spans` is a list of `(start, end)` in whole seconds, of one thread: two spans either have no
# second in common, or one lies inside of the other, and does not begin with it. They stand in no
# order. Write `self_times(spans)`: for each span, in the order of the list, the seconds that belong
# to it and to no span inside of it.

# %%
def self_times(spans):
    own = [end - start for start, end in spans]
    for start, end in spans:
        around = [i for i, (a, b) in enumerate(spans) if a < start and end <= b]
        if around:
            parent = max(around, key=lambda i: spans[i][0])
            own[parent] -= end - start
    return own

# %% [markdown] exercise="hidden"
# ### How much of the exchange is hidden?
#
# `compute` and `exchange` are lists of `(start, end)` in whole seconds. Two computations may
# overlap each other, two exchanges do not. Write `hidden(compute, exchange)`: the share of the
# seconds of the exchange during which something is computed.

# %%
def hidden(compute, exchange):
    busy = {second for start, end in compute for second in range(start, end)}
    sent = [second for start, end in exchange for second in range(start, end)]
    return sum(second in busy for second in sent) / len(sent)

# %% [markdown] exercise="one-clock"
# ### On one clock
#
# `starts[r]` lists when the spans of rank `r` started, in microseconds after `bases[r]`. That is a moment in
# nanoseconds, on a clock that all ranks share. `on_one_clock` should return all starts in microseconds
# after the base of rank 0: a list for each rank. With what it returns, rank 1 seems to come far too late.

# %% given="nanoseconds"
def on_one_clock(starts, bases):
    moved = []
    for own, base in zip(starts, bases):
        ahead = base - bases[0]
        moved.append([start + ahead for start in own])
    return moved

# %%
def on_one_clock(starts, bases):
    moved = []
    for own, base in zip(starts, bases):
        ahead = (base - bases[0]) / 1000
        moved.append([start + ahead for start in own])
    return moved

# %% [markdown] pages=["diagnosis/how-fast"]
# ## How Fast Could It Be?

# %% [markdown] exercise="convolution"
# ### What a convolution costs
#
# A convolution has `inputs` and `outputs` channels and a filter of `kernel` by `kernel`. The images
# have `side` by `side` pixels. Around them are `padding` zeros on each side, and the filter moves by
# `stride` pixels. Write `operations(inputs, outputs, kernel, side, padding, stride)`: the
# floating-point operations of one image, forward and backward, with the gradient of the layer's
# input. A product and its sum are two operations.

# %%
def operations(inputs, outputs, kernel, side, padding, stride):
    pixels = (side + 2 * padding - kernel) // stride + 1
    return 3 * 2 * inputs * outputs * kernel**2 * pixels**2

# %% [markdown] exercise="device-or-exchange" kind="predict"
# ### Device or exchange?
#
# A transformer with `parameters` parameters, whose attention you may neglect, trains `alone` tokens a
# second on one GPU, and `together` tokens a second on `k` of them. A GPU's peak is `peak` operations a
# second. Write `utilisations(parameters, alone, together, k, peak)`: a list of two numbers, the MFU
# with one GPU and the MFU with all `k`.

# %%
def utilisations(parameters, alone, together, k, peak):
    operations = 6 * parameters
    return [operations * alone / peak, operations * together / (k * peak)]

# %% [markdown] exercise="too-busy"
# ### Busier than it can be
#
# `k` GPUs take `seconds` for an update. Each of them has `sequences` sequences of `tokens` tokens and a
# peak of `peak` operations a second, and the network has `parameters` parameters, whose attention you
# may neglect. `mfu` says 280 % of a training with eight GPUs.

# %% given="one-peak"
def mfu(parameters, sequences, tokens, k, seconds, peak):
    batch = sequences * k
    rate = batch * tokens / seconds
    return 6 * parameters * rate / peak

# %%
def mfu(parameters, sequences, tokens, k, seconds, peak):
    batch = sequences * k
    rate = batch * tokens / seconds
    return 6 * parameters * rate / (k * peak)

# %% [markdown] pages=["diagnosis/hangs"]
# ## When It Hangs

# %% [markdown] exercise="first-difference"
# ### Where do the ranks part?
#
# `logs[r]` lists the names of the collectives that rank `r` has called, in their order. One rank
# has left one out, and from there on its log differs. There are at least three ranks. Write
# `first_difference(logs)`: the pair `(step, rank)`, the first place, counted from 0, at which not
# all logs say the same, and the rank that differs from the others there. A log that has ended says
# nothing, which differs from a name.

# %%
def first_difference(logs):
    for step in range(max(len(log) for log in logs)):
        names = [log[step] if step < len(log) else None for log in logs]
        for rank, name in enumerate(names):
            if names.count(name) == 1:
                return step, rank

# %% [markdown] exercise="agree"
# ### Each for itself
#
# Every device runs `train` at the same time. `losses` are its own losses, step by step, and `limit`
# is the same for all. `device.all_gather(number)` returns an array with the numbers of all devices,
# and waits for them. All should stop in the first step in which the *mean* of their losses is below
# the limit, and return the number of that step. With the version below some of them wait for ever.

# %% given="deadlock"
def train(device, losses, limit):
    for step, loss in enumerate(losses):
        mean = device.all_gather(loss).mean()
        if loss < limit:
            return step

# %%
def train(device, losses, limit):
    for step, loss in enumerate(losses):
        mean = device.all_gather(loss).mean()
        if mean < limit:
            return step

# %% [markdown] exercise="one-order"
# ### One order for all
#
# This runs in three processes at the end of an epoch. `loss` is this rank's loss, and `rate` its
# learning rate, of which only that of rank 0 counts: tensors of one number, which you may change.
# If the mean of the losses is `limit` or more, the rate is halved. All ranks should return a list of
# two numbers, the mean loss and the new rate. The version below never returns. Mend it.

# %% given="deadlock"
def end_of_epoch(loss, rate, limit):
    from torch import distributed as dist

    if dist.get_rank() == 0:
        dist.all_reduce(loss)
        if loss / dist.get_world_size() >= limit:
            rate /= 2
        dist.broadcast(rate, src=0)
    else:
        dist.broadcast(rate, src=0)
        dist.all_reduce(loss)
    return [loss.item() / dist.get_world_size(), rate.item()]

# %%
def end_of_epoch(loss, rate, limit):
    from torch import distributed as dist

    dist.all_reduce(loss)
    mean = loss.item() / dist.get_world_size()
    if dist.get_rank() == 0 and mean >= limit:
        rate /= 2
    dist.broadcast(rate, src=0)
    return [mean, rate.item()]

# %% [markdown] exercise="root-cause"
# ### With whom did it begin?
#
# `ends` is a list of `(rank, seconds, exit code)`, one for each process, in no order. Code 0 is a
# good end. Code −15 means that somebody has ended the process, because another one had failed. Any
# other code is a failure of its own. Write `root_cause(ends)`: the rank whose failure came first.

# %%
def root_cause(ends):
    failed = [(seconds, rank) for rank, seconds, code in ends if code not in (0, -15)]
    return min(failed)[1]

# %% [markdown] pages=["diagnosis/your-own-script"]
# ## Your Own Script

# %% [markdown] exercise="mean-of-all"
# ### The mean of unequal means
#
# `gradients[r]` is the gradient of rank `r`, an array, of a loss that is a mean over the `rows[r]`
# rows of that rank. Write `mean_of_all(gradients, rows)`: the gradient of the mean over all rows of
# all ranks, which is what one device would have.

# %%
def mean_of_all(gradients, rows):
    rows = np.array(rows, dtype=float)
    return rows @ np.array(gradients) / rows.sum()

# %% [markdown] exercise="clip-once"
# ### Clip, but when?
#
# `gradients[r]` is the gradient of rank `r`, an array; all ranks have as many rows. `clipped` should
# return the gradient that one device would use: clipped so that its norm is at most `limit`. What
# it returns depends on how the rows are dealt to the ranks.

# %% given="early"
def clipped(gradients, limit):
    parts = []
    for gradient in gradients:
        norm = np.linalg.norm(gradient)
        parts.append(gradient * min(1, limit / norm))
    return np.mean(parts, axis=0)

# %%
def clipped(gradients, limit):
    mean = np.mean(gradients, axis=0)
    norm = np.linalg.norm(mean)
    return mean * min(1, limit / norm)

# %% [markdown] exercise="count-once"
# ### Rows that count twice
#
# A sampler deals `n` test rows to the ranks in turn: rank `r` of `k` gets the rows `r`, `r + k`,
# `r + 2k`, and so on. So that all ranks get the same number, it goes on with row 0, row 1, … after
# the last one. `hits[r][i]` is 1 if the `i`-th row of rank `r` was right, else 0. Write
# `accuracy(hits, n)`: the share of the `n` rows that were right, each counted once.

# %%
def accuracy(hits, n):
    in_order = np.array(hits).T.flatten()
    return in_order[:n].sum() / n

# %% [markdown] exercise="until-none"
# ### Until explain says none
#
# `train(device, batches)` runs on every device at once; `device.rank` and `device.k` say which one it
# is. A batch is a list of the numbers of its rows. `device.load(rows)` makes rows ready, `device.train(rows)`
# updates the network with the gradients of all devices and returns the mean loss of these rows,
# `device.mean(number)` returns the mean over all devices, which meet for it, and `device.evaluate()`
# evaluates the network. Each takes simulated time. Together the devices have to learn all rows of
# each batch, return the mean losses of the batches 0, 10, 20, …, and evaluate after the last batch.
# The version below does, and is slow. The check asks the rules of `d2lmgpu explain` what costs most.
# Mend until it says none.

# %% given="whole-data"
def train(device, batches):
    losses = []
    for rows in batches:
        loss = device.train(device.load(rows))
        losses.append(device.mean(loss))
        if device.rank == 0:
            device.evaluate()
    return losses[::10]

# %%
def train(device, batches):
    losses = []
    for number, rows in enumerate(batches):
        loss = device.train(device.load(rows[device.rank :: device.k]))
        if number % 10 == 0:
            losses.append(device.mean(loss))
    device.evaluate()
    return losses
