"""Data, data parallelism from scratch, and how often a network is right, in PyTorch."""

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F

from d2lmgpu.backend.functions import accuracy_function, balancing_function, loading_functions
from d2lmgpu.collectives.execution import shard_sizes
from d2lmgpu.machine.seed import set_seed
from d2lmgpu.machine.timing import Accumulator
from d2lmgpu.process.lanes import exchange
from d2lmgpu.torch.devices import checked, parallel, profile, synchronize
from d2lmgpu.torch.networks import lenet


@checked
def seed(n) -> None:
    """Seed PyTorch's random numbers and the order of the batches.

    Parameters
    ----------
    n : int
        From 0 to 2³² - 1.

    Raises
    ------
    ArgumentError
        For another number.
    """
    torch.manual_seed(n)
    set_seed(n)


@checked
def array(x) -> torch.Tensor:
    """The NumPy array ``x`` as a tensor on the CPU, of the same type and in the same memory.

    Parameters
    ----------
    x : numpy.ndarray
        Of numbers or bools.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        For what is no such array.
    """
    return torch.from_numpy(x)


@checked
def split_batch(X, y, devices, weights=None) -> tuple[list, list]:
    """Split ``X`` and ``y`` over ``devices``: each shard goes straight to its device.

    The shards are near-equal, the larger ones first, or proportional to ``weights``. With fewer
    examples than devices the last shards are empty. Defined in chapters/scratch/pytorch.

    Parameters
    ----------
    X : Tensor, (n, …)
    y : Tensor, (n,)
    devices : list of torch.device
    weights : list of float, optional
        One a device, none below 0, summing to 1.

    Returns
    -------
    X_shards, y_shards : list of Tensor
        One entry a device.

    Raises
    ------
    ValueError
        For unlike lengths.
    CollectiveError
        For other weights.
    """
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} examples, y has {y.shape[0]}: give as many of each.")
    sizes = shard_sizes(X.shape[0], len(devices), weights)
    return (
        [shard.to(device) for shard, device in zip(X.split(sizes), devices)],
        [shard.to(device) for shard, device in zip(y.split(sizes), devices)],
    )


@checked
def get_params(params, device) -> list:
    """A copy of ``params`` on ``device``, each with a gradient of its own that starts at zero.

    Defined in chapters/scratch/pytorch.

    Parameters
    ----------
    params : list of Tensor
        Of a float type.
    device : torch.device

    Returns
    -------
    list of Tensor

    Raises
    ------
    ArgumentError
        For arrays of another type.
    DeviceError
        If the device is not here.
    """
    new_params = [p.detach().to(device, copy=True).requires_grad_() for p in params]
    for p in new_params:
        p.grad = torch.zeros_like(p)
    return new_params


@exchange
@checked
def allreduce(data) -> None:
    """Replace each tensor in ``data`` by the sum of all, in place.

    Defined in chapters/scratch/pytorch.

    Parameters
    ----------
    data : list of Tensor
        One a device, of one shape and type, none sharing memory.

    Raises
    ------
    ArgumentError
        For other lists, and for parameters while autograd records what is done to them.
    """
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)


@checked
def sgd(params, lr, batch_size) -> None:
    """One step of minibatch SGD, in place, on a list of parameters; then zero gradients.

    Parameters
    ----------
    params : list of Tensor
        Their gradients are of the loss *summed* over ``batch_size`` examples.
    lr : float
    batch_size : int

    Raises
    ------
    ArgumentError
        If a parameter has no gradient, ``lr`` is not finite or ``batch_size`` is below 1.
    """
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad / batch_size
            p.grad.zero_()


@checked
def forward_backward(X, y, params) -> float | torch.Tensor:
    """Add the gradient of the loss, summed over one shard, to ``params``; return that loss.

    A device without data adds nothing. Defined in chapters/scratch/pytorch.

    Parameters
    ----------
    X : Tensor, (n, 1, 28, 28)
    y : Tensor, (n,)
        Labels from 0 to 9, of an integer type.
    params : list of Tensor
        LeNet's, on the same device, each with a gradient.

    Returns
    -------
    Tensor or float
        The loss summed over the n examples; 0.0 without any.

    Raises
    ------
    ArgumentError
        If they are not as above.
    """
    if len(y) == 0:
        return 0.0
    loss = F.cross_entropy(lenet(X, params), y, reduction="sum")
    loss.backward()
    return loss.detach()


@checked
def train_batch(X, y, device_params, devices, lr) -> list:
    """One update of LeNet's replicas on a global batch. Defined in chapters/scratch/pytorch.

    Parameters
    ----------
    X : Tensor, (n, 1, 28, 28)
        On the CPU, as ``y``.
    y : Tensor, (n,)
        Labels from 0 to 9, of an integer type.
    device_params : list of list of Tensor
        A replica a device, as ``get_params`` makes them.
    devices : list of torch.device
    lr : float
        Scales the mean gradient of the n examples.

    Returns
    -------
    list of Tensor or float
        The losses, summed over each shard.

    Raises
    ------
    ArgumentError
        If they are not as above, or if replicas share memory.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    losses = parallel(forward_backward, X_shards, y_shards, device_params)
    with torch.no_grad():
        for i in range(len(device_params[0])):
            allreduce([params[i].grad for params in device_params])
    for params in device_params:
        sgd(params, lr, len(y))
    return losses


@checked
def evaluate_accuracy_gpu(net, data_iter, device=None) -> float:
    """Share of ``data_iter`` that ``net`` classifies right, on one device.

    Afterwards each module of ``net`` is in the mode that it was in.

    Parameters
    ----------
    net : Module or callable
    data_iter : iterable
        Batches (X, y).
    device : torch.device, optional
        Without it: where the parameters of ``net`` are, or the images.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ArgumentError
        If there is no example, or a batch is none.
    """
    modes = {}
    if isinstance(net, nn.Module):
        modes = {module: module.training for module in net.modules()}
        net.eval()
        device = device or next((p.device for p in net.parameters()), None)
    metric = Accumulator(2)
    try:
        with torch.no_grad():
            for X, y in data_iter:
                X, y = X.to(device), y.to(device)
                metric.add(accuracy(net(X), y), len(y))
    finally:  # also if it is interrupted
        for module, mode in modes.items():
            module.training = mode
    return metric[0] / metric[1]


@checked
def evaluate_accuracy_gpus(net, data_iter) -> float:
    """Share of ``data_iter`` classified right, each image counted once, over all devices.

    In a worker of a DistributedDataParallel run every rank takes its part of each batch, and the
    counts are summed; otherwise ``net`` is evaluated where it is. Defined in
    chapters/concise/pytorch.

    Parameters
    ----------
    net : Module
        With parameters; DistributedDataParallel may be around it.
    data_iter : iterable
        Batches (X, y), on each rank the same.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ArgumentError
        If ``net`` has no parameters, there is no example, or a batch is none.
    """
    distributed = dist.is_available() and dist.is_initialized()
    rank, world_size = (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)
    net = getattr(net, "module", net)  # DDP's wrapper might wait for ranks that have no images
    modes = {module: module.training for module in net.modules()}
    net.eval()
    device = next(net.parameters()).device
    counts = torch.zeros(2, device=device)
    try:
        with torch.no_grad():
            for X, y in data_iter:
                X, y = (data.tensor_split(world_size)[rank].to(device) for data in (X, y))
                if len(y):
                    counts[0] += (net(X).argmax(dim=1) == y).sum()
                    counts[1] += len(y)
    finally:  # also if it is interrupted
        for module, mode in modes.items():
            module.training = mode
    if distributed:
        dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


accuracy = checked(accuracy_function(torch.Tensor.to))
load_data_fashion_mnist, load_data_mnist = loading_functions(profile, array)
balance = checked(balancing_function(split_batch, get_params, synchronize))
