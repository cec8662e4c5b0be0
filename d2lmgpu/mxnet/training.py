"""Data, data parallelism from scratch, and how often a network is right, in MXNet."""

import mxnet as mx
from mxnet import autograd, gluon, np

from d2lmgpu.backend.functions import accuracy_function, balancing_function, loading_functions
from d2lmgpu.collectives.execution import shard_sizes
from d2lmgpu.machine.seed import set_seed
from d2lmgpu.machine.timing import Accumulator
from d2lmgpu.mxnet.devices import checked, cpu, parallel, profile, synchronize
from d2lmgpu.mxnet.networks import lenet
from d2lmgpu.process.lanes import exchange


@checked
def seed(n) -> None:
    """Seed MXNet's random numbers and the order of the batches.

    Parameters
    ----------
    n : int
        From 0 to 2³² - 1.

    Raises
    ------
    ArgumentError
        For another number.
    """
    mx.random.seed(n)
    set_seed(n)


@checked
def array(x) -> np.ndarray:
    """The NumPy array ``x`` as MXNet's own on the CPU, of the same type: a copy.

    Parameters
    ----------
    x : numpy.ndarray
        Of numbers or bools.

    Returns
    -------
    ndarray

    Raises
    ------
    ArgumentError
        For what is no such array.
    """
    return np.array(x, dtype=x.dtype, ctx=cpu())


@checked
def split_batch(X, y, devices, weights=None) -> tuple[list, list]:
    """Split ``X`` and ``y`` over ``devices``: each shard goes straight to its device.

    The shards are near-equal, the larger ones first, or proportional to ``weights``. With fewer
    examples than devices the last shards are empty. Defined in chapters/scratch/mxnet.

    Parameters
    ----------
    X : ndarray, (n, …)
    y : ndarray, (n,)
    devices : list of mxnet.Context
    weights : list of float, optional
        One a device, none below 0, summing to 1.

    Returns
    -------
    X_shards, y_shards : list of ndarray
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
    X_shards, y_shards, start = [], [], 0
    for size, device in zip(shard_sizes(X.shape[0], len(devices), weights), devices):
        X_shards.append(X[start : start + size].as_in_ctx(device))
        y_shards.append(y[start : start + size].as_in_ctx(device))
        start += size
    return X_shards, y_shards


@checked
def get_params(params, device) -> list:
    """A copy of ``params`` on ``device``, each with a gradient of its own that starts at zero.

    Defined in chapters/scratch/mxnet.

    Parameters
    ----------
    params : list of ndarray
        Of a float type.
    device : mxnet.Context

    Returns
    -------
    list of ndarray

    Raises
    ------
    ArgumentError
        For arrays of another type.
    DeviceError
        If the device is not here.
    """
    new_params = [p.copyto(device) for p in params]
    for p in new_params:
        p.attach_grad()
    return new_params


@exchange
@checked
def allreduce(data) -> None:
    """Replace each array in ``data`` by the sum of all, in place.

    Defined in chapters/scratch/mxnet.

    Parameters
    ----------
    data : list of ndarray
        One a device, of one shape and type, none sharing memory.

    Raises
    ------
    ArgumentError
        For other lists, and while autograd records.
    """
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].ctx)
    for i in range(1, len(data)):
        data[0].copyto(data[i])


@checked
def sgd(params, lr, batch_size) -> None:
    """One step of minibatch SGD, in place, on a list of parameters.

    Parameters
    ----------
    params : list of ndarray
        Their gradients are of the loss *summed* over ``batch_size`` examples.
    lr : float
    batch_size : int

    Raises
    ------
    ArgumentError
        If a parameter has no gradient, ``lr`` is not finite or ``batch_size`` is below 1.
    """
    for p in params:
        p -= (lr / batch_size) * p.grad


@checked
def forward_backward(X, y, params) -> float | np.ndarray:
    """Put the gradient of the loss, summed over one shard, into ``params``; return that loss.

    A device without data contributes zeros. Defined in chapters/scratch/mxnet.

    Parameters
    ----------
    X : ndarray, (n, 1, 28, 28)
    y : ndarray, (n,)
        Labels from 0 to 9, of an integer type.
    params : list of ndarray
        LeNet's, on the same device, each with a gradient.

    Returns
    -------
    ndarray or float
        The loss summed over the n examples; 0.0 without any.

    Raises
    ------
    ArgumentError
        If they are not as above.
    """
    if len(y) == 0:
        for p in params:
            p.grad[:] = 0
        return 0.0
    with autograd.record():
        loss = gluon.loss.SoftmaxCrossEntropyLoss()(lenet(X, params), y).sum()
    loss.backward()
    return loss


@checked
def train_batch(X, y, device_params, devices, lr) -> list:
    """One update of LeNet's replicas on a global batch. Defined in chapters/scratch/mxnet.

    Parameters
    ----------
    X : ndarray, (n, 1, 28, 28)
        On the CPU, as ``y``.
    y : ndarray, (n,)
        Labels from 0 to 9, of an integer type.
    device_params : list of list of ndarray
        A replica a device, as ``get_params`` makes them.
    devices : list of mxnet.Context
    lr : float
        Scales the mean gradient of the n examples.

    Returns
    -------
    list of ndarray or float
        The losses, summed over each shard.

    Raises
    ------
    ArgumentError
        If they are not as above, or if replicas share memory.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    losses = parallel(forward_backward, X_shards, y_shards, device_params)
    for i in range(len(device_params[0])):
        allreduce([params[i].grad for params in device_params])
    for params in device_params:
        sgd(params, lr, len(y))
    return losses


@checked
def evaluate_accuracy_gpu(net, data_iter, device=None) -> float:
    """Share of ``data_iter`` that ``net`` classifies right, on one device.

    Parameters
    ----------
    net : Block or callable
    data_iter : iterable
        Batches (X, y).
    device : mxnet.Context, optional
        Without it: the first one that holds the parameters of ``net``, or where the images are.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ArgumentError
        If there is no example, or a batch is none.
    """
    if device is None and isinstance(net, gluon.Block):
        device = next((p.list_ctx()[0] for p in net.collect_params().values()), None)
    metric = Accumulator(2)
    with autograd.pause():  # inside of a record, a net would be in its training mode
        for X, y in data_iter:
            if device is not None:
                X, y = X.as_in_ctx(device), y.as_in_ctx(device)
            metric.add(accuracy(net(X), y), len(y))
    return metric[0] / metric[1]


@checked
def evaluate_accuracy_gpus(net, data_iter) -> float:
    """Share of ``data_iter`` classified right, each image counted once, over all devices.

    Every device that holds the parameters of ``net`` takes its shard of each batch. Defined in
    chapters/concise/mxnet.

    Parameters
    ----------
    net : Block
        With parameters that are initialised.
    data_iter : iterable
        Batches (X, y).

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ArgumentError
        If ``net`` has no such parameters, there is no example, or a batch is none.
    """
    devices = next(iter(net.collect_params().values())).list_ctx()
    metric = Accumulator(2)

    def count(X, y):
        return accuracy(net(X), y) if len(y) else 0.0

    for X, y in data_iter:
        metric.add(sum(parallel(count, *split_batch(X, y, devices))), len(y))
    return metric[0] / metric[1]


accuracy = checked(accuracy_function(np.ndarray.astype))
load_data_fashion_mnist, load_data_mnist = loading_functions(profile, array)
balance = checked(balancing_function(split_batch, get_params, synchronize))
