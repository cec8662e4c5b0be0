# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Clusters

# %% [markdown] pages=["clusters/many-machines"]
# ## Many Machines

# %% [markdown] exercise="local-rank"
# ### Which host, which GPU?
#
# A launcher starts `per_host` processes on each of `hosts` hosts, the first ranks on the first
# host. Write `place(rank, hosts, per_host)`: a list of two numbers, the host on which a rank runs
# (the first is 0) and its local rank there, which is the number of its GPU.

# %%
def place(rank, hosts, per_host):
    return [rank // per_host, rank % per_host]

# %% [markdown] exercise="slow-link" kind="predict"
# ### What crosses the slow link
#
# Each of `hosts` hosts has `per_host` GPUs and one link to the others. The GPUs allreduce an array
# of `num_bytes`. In the *flat* way all GPUs form one ring, host after host. In the *hierarchical*
# way the GPUs of a host first add up their arrays among themselves; then one of each host takes
# part in a ring of hosts, and hands the result on. Write `slow_bytes(hosts, per_host, num_bytes,
# hierarchical)`: the bytes that one host sends over its link.

# %%
def slow_bytes(hosts, per_host, num_bytes, hierarchical):
    ring = hosts if hierarchical else hosts * per_host
    return 2 * (ring - 1) / ring * num_bytes if hosts > 1 else 0

# %% [markdown] exercise="two-hosts"
# ### Once over the slow link
#
# This answer runs in four processes. Think of ranks 0 and 1 as on one host, and of 2 and 3 as on
# another one. `x` is a tensor. Write `hierarchical(x)`: afterwards `x` holds on each rank the sum
# over all four. Add up on each host first; then the host sends its sum to the other one, once. No
# collective may have both ranks of a host and ranks of the other host in it. The function imports
# what it needs.

# %%
def hierarchical(x):
    from torch import distributed as dist

    rank = dist.get_rank()
    first = rank - rank % 2
    on_hosts = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    firsts = dist.new_group([0, 2])
    dist.reduce(x, first, group=on_hosts[rank // 2])
    if rank == first:
        dist.all_reduce(x, group=firsts)
    dist.broadcast(x, first, group=on_hosts[rank // 2])

# %% [markdown] exercise="servers" kind="predict"
# ### How many servers?
#
# MXNet's `workers` each push gradients of `num_bytes` to `servers` servers, an equal part to each,
# and pull as much. Workers and servers all have hosts of their own. Every link carries both
# directions at the same time. Write `busiest(workers, servers, num_bytes)`: the bytes of one
# direction on the link that has the most of them.

# %%
def busiest(workers, servers, num_bytes):
    return max(num_bytes, workers * num_bytes / servers)

# %% [markdown] pages=["clusters/on-your-cluster"]
# ## On Your Cluster: Slurm

# %% [markdown] exercise="sweep"
# ### A sweep as an array
#
# An array of jobs numbers its tasks 0, 1, 2, … and each task reads its number from
# `SLURM_ARRAY_TASK_ID`. The first learning rate is to be tried with every batch size, in the order
# of their list, then the second one, and so on. Write `settings(task, lrs, batch_sizes)`: a list
# of the two numbers with which a task trains, the learning rate first.

# %%
def settings(task, lrs, batch_sizes):
    which, size = divmod(task, len(batch_sizes))
    return [lrs[which], batch_sizes[size]]

# %% [markdown] exercise="srun-ranks"
# ### Ranks from Slurm
#
# `srun` tells each task `procid` (its number in the job), `localid` (its number on its node),
# `ntasks` and `nnodes` (how many tasks and nodes the job has). `ranks` should return what
# `torch.distributed` wants: rank, local rank and world size. It worked on one node.

# %% given="global"
def ranks(procid, localid, ntasks, nnodes):
    return [procid, procid, ntasks]

# %%
def ranks(procid, localid, ntasks, nnodes):
    return [procid, localid, ntasks]

# %% [markdown] exercise="time-limit" kind="predict"
# ### Longer than a job may be
#
# A training takes `minutes` of computing. A job may hold its nodes for `limit` minutes, and each
# job needs `start` minutes to load the data and the checkpoint before it trains on from where the
# last one ended. All are whole numbers. Write `jobs(minutes, limit, start)`: how many jobs it takes.

# %%
def jobs(minutes, limit, start):
    return -(-minutes // (limit - start))

# %% [markdown] pages=["clusters/when-a-machine-dies"]
# ## When a Machine Dies

# %% [markdown] exercise="missing"
# ### What is missing in this checkpoint?
#
# A training is to go on bit for bit. Its checkpoint holds the weights and what is named in the list
# `saved`. The optimizer has this `momentum`, the network this `dropout`, and the checkpoint was
# written `position` images after the epoch's beginning, in an order that is made of the seed and
# the epoch. Write `missing(saved, momentum, dropout, position)`: three numbers, for `"optimizer"`,
# `"random"` and `"position"` in this order, each 1 if it has to be in the checkpoint and is not,
# else 0.

# %%
def missing(saved, momentum, dropout, position):
    needed = {
        "optimizer": momentum > 0, "random": dropout > 0, "position": position > 0,
    }
    return [int(need and name not in saved) for name, need in needed.items()]

# %% [markdown] exercise="place-it"
# ### Place the checkpoint
#
# A training of `total` updates saves after every `every` updates, and at its end. It was killed and
# goes on after `first` updates; now it has made `done` of them. `next_save` should be the number
# of updates after which it saves next. With this one, a training that was killed again and again
# in less than `every` updates saved nothing any more. Mend it so that each life saves after the
# same updates.

# %% given="from-here"
def next_save(done, first, total, every):
    since = done - first
    return min(first + since - since % every + every, total)

# %%
def next_save(done, first, total, every):
    return min(done - done % every + every, total)

# %% [markdown] exercise="interval" kind="predict"
# ### Choose the interval
#
# A checkpoint takes `cost` seconds, an update `update` seconds, and each of `hosts` hosts fails
# once in `days` days. One failure ends all. Write `every(cost, update, hosts, days)`: after how
# many updates to save, by Young's formula. It need not be a whole number.

# %%
def every(cost, update, hosts, days):
    return (2 * cost * days * 86400 / hosts) ** 0.5 / update
