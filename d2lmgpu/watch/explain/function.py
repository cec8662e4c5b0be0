"""``explain`` for a function of a notebook: it is sent to processes that watch it."""

import inspect
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path

from d2lmgpu.launch import launch
from d2lmgpu.process.sending import functions_of, pickled, rooms_of
from d2lmgpu.process.settings import settings
from d2lmgpu.watch import WatchError, function_script
from d2lmgpu.watch.explain.answer import Answer
from d2lmgpu.watch.explain.pair import LIMITS, OBSERVER, answer, compared
from d2lmgpu.watch.explain.summary import summary
from d2lmgpu.watch.run import check_devices, run

DEVICES = "d2lmgpu.watch.explain.devices"
NO_DEVICES = (
    "{name} was called with num_gpus={k}, and its devices were not seen: they are watched where "
    "the backend's parallel runs them and its loader makes the batches, where launch starts a "
    "process for each, and in a train without num_gpus that uses torch.distributed. A plain loop "
    "over devices is one thread: on CPU cores they take turns, and the second one cannot help."
)
OF_MXNET = (
    "{name} uses MXNet, whose devices are watched where they are threads of one process: give a "
    "train that takes num_gpus and does not call launch."
)


def uses_launch(fn, visited) -> bool:
    """Whether ``fn``, or a function that it uses, calls ``launch``."""
    for function in functions_of(fn):
        if any(function is known for known in visited) or function.__module__.startswith(
            "d2lmgpu."
        ):
            continue
        visited.append(function)
        used = inspect.getclosurevars(function)
        values = [*used.globals.values(), *used.nonlocals.values()]
        if launch in values or "launch" in used.unbound:
            return True
        if any(uses_launch(value, visited) for value in values if inspect.isfunction(value)):
            return True
    return False


def explain(train, num_gpus=2, unprotected=False, **arguments) -> Answer:
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
    if not callable(train):
        raise WatchError(f"explain takes a function that trains, not {train!r}.")
    k, name = check_devices(num_gpus), getattr(train, "__name__", "train")
    counts = "num_gpus" in inspect.signature(train).parameters
    ranks = not counts or uses_launch(train, [])
    framework = "mxnet" if "d2lmgpu.mxnet" in rooms_of(train) else "torch"
    if ranks and framework == "mxnet":
        raise WatchError(OF_MXNET.format(name=name))
    source, notes = functions_of(train)[0].__code__.co_filename, []

    def summarised(number):
        call_arguments = arguments | ({"num_gpus": number} if counts else {})
        job = {
            "call": pickled(train, call_arguments, WatchError),
            "ranks": ranks,
            "joins": not counts,
        }
        with tempfile.NamedTemporaryFile(suffix=".job") as file:
            Path(file.name).write_bytes(pickle.dumps(job | settings({})))
            watched = run(
                function_script.__file__,
                [file.name],
                number if ranks else 1,
                OBSERVER if ranks else DEVICES,
                limits=LIMITS,
                own=source,
                framework=framework,
                unprotected=unprotected,
            )
        notes[:] = [watched.note] if watched.note else []
        if watched.trouble:
            raise WatchError(watched.explanation.replace("The script", name))
        if not ranks:
            if not watched.reports[0].get("devices"):
                raise WatchError(NO_DEVICES.format(name=name, k=number))
            watched = replace(watched, reports=watched.reports[0]["devices"])
        return summary(watched)

    single, many = compared(summarised, 1, k)
    return answer(name, single, many, notes, folder=str(Path(source).parent))
