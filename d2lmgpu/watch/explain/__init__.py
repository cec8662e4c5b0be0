"""Why is the second device slower? The question, for a script and for a function."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d2lmgpu.watch.explain.answer import Answer


def explain(train, num_gpus=2, unprotected=False, **arguments) -> "Answer":
    """What costs most of a step of ``train(**arguments)``, called with one and with more devices.

    A train that takes ``num_gpus`` gets 1, then ``num_gpus``: its devices are then threads, driven
    by ``d2lmgpu.torch.parallel``, or processes, started by ``launch``. One without it runs once in
    each process of a group, as ``launch`` would call it. It trains a few dozen steps at most, in
    processes of its own, in a view of your files that is removed. On CPU cores; with MXNet devices
    that are threads only.

    Parameters
    ----------
    train : callable
    num_gpus : int
        Devices of the second call.
    unprotected : bool
        Also where there is no such view.
    **arguments : object
        Of ``train``, as ``batch_size=256``.

    Returns
    -------
    Answer
        A notebook shows it.

    Raises
    ------
    WatchError
        For a train that cannot be sent or does not train, whose devices are not seen, for more
        devices than there are, and where your files cannot be protected.
    """
    from d2lmgpu.watch.explain.function import explain_function

    return explain_function(train, num_gpus, arguments, unprotected)
