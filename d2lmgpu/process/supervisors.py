"""Starts the supervisors of ``launch``, which import a framework and fork the workers."""

import os
import threading
from contextlib import suppress

from d2lmgpu.process.addresses import LOOPBACK_INTERFACE
from d2lmgpu.process.child import Child
from d2lmgpu.process.forks import can_fork
from d2lmgpu.process.forkserver import ForkServer
from d2lmgpu.process.settings import STANDARD, import_path, run_module

_RANKS = run_module("d2lmgpu.process.ranks")
# Imported once, before the workers are forked. What an optimiser and DDP import as soon as they are
# made takes as long as PyTorch; with it come FSDP and tensor parallelism. The last is in the job.
_IMPORTED = ("torch", "torch._dynamo", "d2lmgpu.process.torch_group")


def start_ranks(*modules, interface=LOOPBACK_INTERFACE, fork_server=None) -> Child:
    """A supervisor for the workers of ``launch`` that imports ``modules`` first.

    What rank 0 writes to standard error is told apart.

    They speak to each other through the network ``interface``: by default neither they nor a store
    of theirs can be seen from outside. None leaves the choice to gloo and NCCL.
    """
    return Child(_RANKS, modules, _environ(interface), errors_apart=True, fork_server=fork_server)


def _environ(interface=LOOPBACK_INTERFACE):
    """What the environment of the workers has more than that of the caller."""
    # What was added to the path since this process began comes after Python's own, so that nothing
    # beside the notebook is taken for one of its modules.
    path = [os.environ.get("PYTHONPATH"), STANDARD, os.path.join(STANDARD, "lib-dynload")]
    path = filter(None, [*path, *import_path()])
    environ = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}
    if interface:
        environ |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    return environ


class Supervisors:
    """Supervisors on this host with their imports done, as far as they were done before.

    They are forked by a fork server, which stays for as long as a process that is started now would
    be like it. Where there can be none, each supervisor imports what it needs.
    """

    def __init__(self):
        self._forget()
        if can_fork():
            os.register_at_fork(after_in_child=self._forget)  # its child may not use what it has

    def _forget(self):
        self._lock = threading.Lock()
        self._server = None
        self._prepared = False
        self._failed = None  # one that ended before it forked: it cannot import what it should

    def prepare(self) -> None:
        """Have a fork server import PyTorch now; the next supervisor is forked by it."""
        with self._lock:
            self._renew(os.environ | _environ())
            self._prepared = True

    def start(self) -> Child:
        """A supervisor that has imported PyTorch, or does: see ``start_ranks``."""
        with self._lock:
            environ = os.environ | _environ()
            if not self._fits(environ):
                self._renew(environ)
            self._prepared = False
            if server := self._server:
                try:
                    return start_ranks(*_IMPORTED, fork_server=server)
                except ConnectionError:
                    self._server = None
                    self._failed = None if server.has_forked else server
        return start_ranks(*_IMPORTED)

    def _fits(self, environ):
        server = self._server
        if not (server and server.serves):
            return False
        return self._prepared or server.fits(environ)

    def _renew(self, environ):
        if self._server:
            self._server.close()
        self._server = None
        if can_fork() and not (self._failed and self._failed.fits(environ)):
            with suppress(OSError):  # a start of the supervisor itself will say why
                self._server = ForkServer(_IMPORTED, environ)
