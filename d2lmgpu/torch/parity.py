"""A network that was split over ranks, trained beside the whole one, and how far they are apart."""

import torch
from torch import nn
from torch.nn import functional as F


def loss_of(net, X, y) -> torch.Tensor:
    """The mean loss over all tokens of a batch.

    Defined in chapters/beyond/tensor-parallel.

    Parameters
    ----------
    net : torch.nn.Module
        Maps symbols to scores, as ``GPT`` does.
    X, y : torch.Tensor
        Symbols, and those that follow them: (batch, tokens), whole numbers.

    Returns
    -------
    torch.Tensor, ()
    """
    return F.cross_entropy(net(X).flatten(0, 1), y.flatten())


def trained_beside(
    theirs, batches, pairs, step, same=lambda t, of_all: (t, of_all), then=None
) -> dict:
    """Train what a rank has of a network with SGD, and beside it the whole network.

    Defined in chapters/beyond/tensor-parallel.

    Parameters
    ----------
    theirs : torch.nn.Module
        The whole network, a replica on each rank.
    batches : iterable of (X, y)
        The same on all ranks; one update for each.
    pairs : list of (str, torch.nn.Parameter, torch.nn.Parameter)
        A name, a parameter of this rank, and the parameter of ``theirs`` that it is, or is a part
        of.
    step : callable
        ``step(X, y)`` leaves the gradients of the whole batch; returns the loss of the whole
        batch, a float, or None on a rank that has none.
    same : callable
        ``same(t, of_all)``: of a tensor of this rank and that of all, two that should be equal.
    then : callable, optional
        Called before each update, when the gradients of ``theirs`` are there.

    Returns
    -------
    dict
        How far apart they are: of each update's "loss", of each of its "gradients" at most, of the
        "parameters" in the end at most; "wrong", name -> relative distance of the first gradient;
        and "moved", whether the updates have changed the whole network.
    """
    parameters = [p for _, p, _ in pairs], theirs.parameters()
    trainers = [torch.optim.SGD(of_one, lr=0.1) for of_one in parameters]
    results = {"loss": [], "gradients": [], "wrong": {}}
    begun = nn.utils.parameters_to_vector(theirs.parameters())
    for X, y in batches:
        for trainer in trainers:
            trainer.zero_grad()
        loss, right = step(X, y), loss_of(theirs, X, y)
        right.backward()
        if then:
            then()
        if loss is not None:
            results["loss"].append(abs(loss - right.item()))
        for name, p, q in pairs:
            gradient, correct = same(p.grad, q.grad)
            off = gradient - correct
            results["gradients"].append(off.abs().max().item())
            relative = off.norm() / correct.norm().clamp(min=1e-4)  # some should be zero
            results["wrong"].setdefault(name, relative.item())
        for trainer in trainers:
            trainer.step()
    ends = [same(p.detach(), q.detach()) for _, p, q in pairs]
    ended = nn.utils.parameters_to_vector(theirs.parameters())
    return results | {
        "parameters": max((p - q).abs().max().item() for p, q in ends),
        "moved": not torch.equal(begun, ended),
    }


def equal(results) -> bool:
    """Whether the training of ``trained_beside`` moved, and all that it found is equal to 1e-12.

    Defined in chapters/beyond/tensor-parallel.

    Parameters
    ----------
    results : dict

    Returns
    -------
    bool
    """
    apart = max(*results["loss"], *results["gradients"], results["parameters"])
    return results["moved"] and apart <= 1e-12
