"""A small network, a step with labels, and its recording: what two pages take traces of."""

from itertools import pairwise

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def dense_layers() -> nn.Sequential:
    """Six dense layers for images of 28 by 28 pixels and ten classes, the same each time.

    Defined in chapters/diagnosis/profile. Random numbers are seeded.

    Returns
    -------
    torch.nn.Sequential
        With 1,457,674 parameters.
    """
    torch.manual_seed(0)
    sizes = [784, *5 * [512], 10]
    layers = [nn.Sequential(nn.ReLU(), nn.Linear(a, b)) for a, b in pairwise(sizes)]
    return nn.Sequential(nn.Flatten(), *layers)


def labelled_step(net, optimizer, X, y) -> torch.Tensor:
    """One update of a rank, its parts labelled forward, backward, exchange and update.

    Defined in chapters/diagnosis/profile. The gradients of a network that is not wrapped by DDP
    are averaged after the backward pass, one parameter after the other.

    Parameters
    ----------
    net : torch.nn.Module
        A network, or DDP around one.
    optimizer : torch.optim.Optimizer
        Of its parameters.
    X, y : torch.Tensor
        This rank's images, and their classes.

    Returns
    -------
    torch.Tensor
        The mean loss of this rank's rows.
    """
    with record_function("forward"):
        loss = F.cross_entropy(net(X), y)
    with record_function("backward"):
        optimizer.zero_grad()
        loss.backward()
    if not isinstance(net, DistributedDataParallel):
        with record_function("exchange"):
            for p in net.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
    with record_function("update"):
        optimizer.step()
    return loss


def record_steps(one_step, path) -> profile:
    """Run three steps under the profiler, and write a trace of the last two.

    Defined in chapters/diagnosis/profile.

    Parameters
    ----------
    one_step : callable
        Makes one step.
    path : str
        Where the trace is written, in Chrome's format.

    Returns
    -------
    torch.profiler.profile
        With ``key_averages`` of these steps.
    """
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(path),
    ) as profiler:
        for _ in range(3):
            one_step()
            profiler.step()
    return profiler
