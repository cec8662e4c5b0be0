"""Collectives of a worker of ``launch``, noted as they are called.

The functions of torch.distributed are replaced: a kernel of torch.library, as a watched script has
it, would see more and take some 50 microseconds of each call. What DDP exchanges is not noted:
where its ranks wait, their stacks tell.
"""

import contextlib
import inspect
import threading
import traceback
from collections.abc import Iterator
from functools import wraps

from d2lmgpu.process.hangs.log import Log, stack

ANY = -1  # a message from any rank
PEER = {"send": "dst", "recv": "src", "isend": "dst", "irecv": "src"}
NAMES = (
    "all_reduce",
    "all_reduce_coalesced",
    "all_gather",
    "all_gather_single",
    "all_gather_into_tensor",
    "all_gather_coalesced",
    "all_gather_object",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "monitored_barrier",
    *PEER,
)


@contextlib.contextmanager
def logged(folder, own, rank, world, torch) -> Iterator[None]:
    """Keep in ``folder`` what this process, which is ``rank`` of ``world``, does and waits for.

    own: a function that tells the reader's files of others. torch: the module.
    """
    log = Log(folder, own)
    log.start(rank, world, joined=True)
    note_calls(log, torch)
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(Exception):  # the reader may have replaced what that needs
            text = "".join(traceback.format_exception_only(error)).strip()
            log.ended("raised", text, stack(error))
        raise
    with contextlib.suppress(Exception):
        log.ended("returned")


def note_calls(log, torch) -> None:
    """From now on tell ``log`` of each collective and each update of this process."""
    dist = torch.distributed

    def note(name, arguments):
        peer = None
        if name in PEER:
            peer = arguments.get(PEER[name])
            peer = ANY if peer is None else peer
        first = next(iter(arguments.values()), None)
        tensors = [first] if isinstance(first, torch.Tensor) else []
        log.note(name, tensors, group_in_words(dist, arguments.get("group")), peer)

    note_each_call(torch, note)
    dist.Work.wait = _waits(dist.Work.wait)
    _count_updates(log)


def note_each_call(torch, note) -> None:
    """From now on ``note(name, {parameter: argument})`` comes before each call of one of NAMES."""
    dist, inside = torch.distributed, threading.local()
    for name in NAMES:
        if (real := getattr(dist, name, None)) is not None:
            noted = _noted(torch, name, real, note, inside)
            for module in (dist, dist.distributed_c10d):  # so that `P2POp` takes `isend`
                setattr(module, name, noted)


def _noted(torch, name, real, note, inside):
    """``real`` that is noted, unless it is called ``inside`` of another one."""
    parameters = [*inspect.signature(real).parameters]

    @wraps(real)
    def noted(*args, **kwargs):
        if getattr(inside, "name", None) or torch.compiler.is_compiling():
            return real(*args, **kwargs)
        inside.name = name
        try:
            note(name, dict(zip(parameters, args)) | kwargs)
            return real(*args, **kwargs)
        finally:
            inside.name = None

    return noted


def group_in_words(dist, group) -> str:
    """The name of a group, as its maker has called it; empty of the one of all ranks."""
    if group is None or group is dist.group.WORLD:
        return ""
    described = group.group_desc not in ("", "undefined")
    return group.group_desc if described else group.group_name


def _waits(real):
    @wraps(real)
    def wait(*args, **kwargs):  # so that a stack shows it
        return real(*args, **kwargs)

    return wait


def _count_updates(log):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    leading = []

    def stepped(optimizer, *_):
        if not leading:
            leading.append(optimizer)
        log.updates += optimizer is leading[0]

    register_optimizer_step_post_hook(stepped)
