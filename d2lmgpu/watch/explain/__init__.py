"""Why is the second device slower? The question, for a script and for a function."""


def explain(train, num_gpus=2, unprotected=False, **arguments):
    """What costs most of a step of ``train(**arguments)``: an ``Answer``, which a notebook shows.

    It is called with one and with ``num_gpus`` devices, in processes of its own.

    A train that takes ``num_gpus`` gets 1, then ``num_gpus``: its devices are then threads, driven
    by ``d2lmgpu.torch.parallel``, or processes, started by ``launch``. One without it runs once in
    each process of a group, as ``launch`` would call it. It trains a few dozen steps at most, in
    a view of your files that is removed; ``unprotected``: also where there is no such view.

    Raises WatchError for a train that cannot be sent or does not train, whose devices are not seen,
    for more devices than there are, and where your files cannot be protected. On CPU cores; with
    MXNet devices that are threads only.
    """
    from d2lmgpu.watch.explain.function import explain_function

    return explain_function(train, num_gpus, arguments, unprotected)
