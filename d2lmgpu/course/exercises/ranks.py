"""What a checker has real ranks do, to see whether an answer is what becomes of it.

Each function is called in every rank, see ``processes.in_processes``.
"""


def rings(times, data) -> None:
    """So many allreduces, by rings, of 16-bit numbers."""
    from d2lmgpu.collectives.ring import ring_allreduce

    for _ in range(times):
        ring_allreduce(data.half())


def stage(orders, X, y, weights) -> object:
    """A stage's operations in their order; the gradient of its weights."""
    import torch
    from torch import distributed as dist

    rank, last = dist.get_rank(), dist.get_world_size() - 1
    gradient, held, sent = torch.zeros_like(weights), {}, []

    def arriving(source):
        data = torch.empty_like(X[0])
        dist.recv(data, source)
        return data

    def send(data, to):
        sent.append((dist.isend(data, to), data))

    for kind, i in orders[rank]:
        if kind == "F":
            held[i] = arriving(rank - 1) if rank else X[i]
            if rank < last:
                send(held[i] @ weights, rank + 1)
        else:
            H = held.pop(i)
            back = arriving(rank + 1) if rank < last else H @ weights - y[i]
            gradient += H.T @ back
            if rank:
                send(back @ weights.T, rank - 1)
    for sending, _ in sent:
        sending.wait()
    return gradient


def rows_on_a_mesh(dp, tp, numbers) -> object:
    """The rows that are left to a rank of a matrix whose rows are numbered."""
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
    net = nn.Linear(1, len(numbers), bias=False).double()
    net.weight.data[:, 0] = numbers
    parallelize_module(net, mesh["tp"], ColwiseParallel())
    fully_shard(net, mesh=mesh["dp"])
    return net.weight.to_local().detach()[:, 0]


def layers_by_key(keys, layers, _) -> list[int]:
    """How many layers of a network of such names PyTorch finds for each key."""
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ParallelStyle, parallelize_module

    class Count(ParallelStyle):
        def __init__(self):
            self.layers = 0

        def _apply(self, module, device_mesh):
            self.layers += 1
            return module

    net = nn.Module()
    for name in sorted(layers):  # a layer after the one in which it is
        place, _, last = name.rpartition(".")
        net.get_submodule(place).add_module(last, nn.Module())
    plan = {key: Count() for key in keys}
    parallelize_module(net, init_device_mesh("cpu", (2,)), plan)
    return [plan[key].layers for key in keys]


def step_of_hsdp(blocks, dp, fsdp, X) -> None:
    """One forward and backward pass through blocks, and a last layer that is none."""
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dp, fsdp), mesh_dim_names=("dp", "fsdp"))
    width = X.shape[1]
    layers = [nn.Linear(width, width, bias=False).double() for _ in range(blocks + 1)]
    net = nn.Sequential(*layers)
    for layer in [*layers[:-1], net]:
        fully_shard(layer, mesh=mesh)
    net(X).sum().backward()
