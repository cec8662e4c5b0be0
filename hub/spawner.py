"""The spawner: a GPU choice at start, a lease while the server runs, nothing left behind after it.

Two classes share ``GpuLease``: ``GpuSpawner`` runs each learner's server under the learner's own
Unix account; ``OneAccountGpuSpawner`` runs all under the hub's, for a hub on loopback.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import timezone
from html import escape
from subprocess import SubprocessError
from typing import NoReturn

import accounts
import gpu_slots
import limits
import psutil
from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner
from jupyterhub.utils import maybe_future
from settings import Settings
from traitlets import Any, Instance, Unicode

from d2lmgpu.process.output import cut
from d2lmgpu.process.supervisor import remove

SLOTS = gpu_slots.GpuSlots()  # one table for the hub's one process
LINES = 3  # of the last words of a server that did not start
WORDS = 500  # bytes of their beginning, and of their end
MARK = "D2LMGPU_LEASE"  # in the environment of everything that a server starts


class GpuLease(LocalProcessSpawner):
    """Adds the lease of GPUs, the limits and the clean-up to a spawner of local processes."""

    settings = Instance(Settings, config=True, help="The hub's settings.")
    groups = Any(config=True, help="limits.Groups; None: no limit can be set here.")
    no_limits = Unicode(config=True, help="Why no limit can be set, for the form.")
    gpus = ()  # the ids of the lease
    wanted = 0  # what the start options asked for
    runtime = ""  # the folder of what the server writes for itself

    async def get_options_form(self) -> str:
        """The form: how many GPUs, how many are free, who has the others, which limits hold."""
        try:
            present, trouble = await self.present(), ""
        except gpu_slots.Refused as refusal:
            present, trouble = (), refusal.message
        free = len(SLOTS.free_gpus(present))
        counts = gpu_slots.choices(len(present), self.settings.gpus_per_learner)
        chosen = gpu_slots.proposed(counts, free)
        options = "".join(
            f'<option value="{count}"{" selected" if count == chosen else ""}'
            f"{' disabled' if count > free else ''}>{count}</option>"
            for count in counts
        )
        kind = "simulated GPUs (shares of the CPU)" if self.settings.simulated_gpus else "GPUs"
        availability = (
            f"{SLOTS.availability(present, kind)}." if present else "There is no GPU now."
        )
        notes = [
            trouble or availability,
            accounts.little_room(self.home()),
            gpu_slots.WITHOUT,
            self.no_limits and f"Memory and CPU are not limited here: {self.no_limits}.",
        ]
        return (
            f'<label for="gpus">How many {kind}?</label>'
            f'<select class="form-control" id="gpus" name="gpus">{options}</select>'
            + "".join(f"<p>{escape(note)}</p>" for note in notes if note)
        )

    def run_options_from_form(self, form) -> dict:
        """Form data ``{"gpus": ["2"]}`` -> start options ``{"gpus": 2}``; junk is refused later."""
        text = form.get("gpus", ["0"])[0]
        return {"gpus": int(text) if text.isdecimal() else text}

    def options_from_query(self, query) -> NoReturn:
        """Refuse a GPU count in an address: any site's link could then take GPUs in your name.

        JupyterHub shows the form instead, with these words above it.
        """
        raise gpu_slots.Refused(400, "choose-here", "Choose the GPUs here, not in the address.")

    @staticmethod
    def apply_user_options(spawner, options):
        """Take over the start options, from the form or by REST. Refuses junk (400)."""
        spawner.wanted = gpu_slots.requested(options)

    async def present(self) -> tuple[str, ...]:
        """The GPUs of this machine, now."""
        if self.settings.simulated_gpus:
            return tuple(f"simulated-{i}" for i in range(self.settings.simulated_gpus))
        return await asyncio.to_thread(gpu_slots.present_gpus)

    async def start(self) -> tuple:
        await self.release()  # what a hub that died in the middle of it has not ended
        present = await self.present() if self.wanted else ()
        most = self.settings.gpus_per_learner
        self.gpus = SLOTS.lease(self._log_name, self.wanted, present, most)
        self.runtime = accounts.runtime_folder(self.account)
        held = self.hold_port()
        words, writing = os.pipe()
        os.set_blocking(words, False)
        try:
            try:
                self.popen_kwargs = {"stdin": writing}  # see keeper.py
                address = await super().start()
            except (OSError, SubprocessError) as error:  # the command, or the account
                raise gpu_slots.Refused(
                    500, "not-started", f"Your server could not be started: {error}."
                ) from error
            finally:
                os.close(writing)
            await self.comes_up(words)
        finally:
            os.close(words)
            held.close()
        return address

    def hold_port(self) -> socket.socket:
        """Choose the server's port; until the socket is closed nobody else is given that one.

        It is bound and does not listen: the server, with SO_REUSEADDR, still can listen there.
        """
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not self.port:
            held.bind((self.ip or "127.0.0.1", 0))
            self.port = held.getsockname()[1]
        return held

    async def comes_up(self, words) -> None:
        """Wait until the server listens. Refused, with its last words, if it ends before."""
        while (status := await self.poll()) is None:
            if await asyncio.to_thread(is_listening, self.pid, self.port):
                return
            await asyncio.sleep(0.2)
        how = f"exit code {status}" if status >= 0 else signal.strsignal(-status).lower()
        text = b""
        with suppress(BlockingIOError):  # the keeper was killed, and something has its pipe
            text = os.read(words, 65536)
        raise ended(how, text.decode(errors="replace"))

    def get_env(self) -> dict:
        env = super().get_env()
        # Temporary files as well: they go with the server, even if it and its workers are killed.
        env["JUPYTER_RUNTIME_DIR"] = env["TMPDIR"] = self.runtime
        env.update(gpu_slots.environment(self.gpus, bool(self.settings.simulated_gpus)))
        env[MARK] = self.mark
        return env

    @property
    def mark(self) -> str:
        """One text per server of this hub, the same after a hub restart."""
        return f"{self.hub.api_url} {self._log_name}"

    def make_preexec_fn(self, name) -> Callable:
        become = super().make_preexec_fn(name)
        if self.groups is None:
            return become
        group = self.groups.make(self._log_name, self.mem_limit, self.cpu_limit)

        def preexec():
            limits.enter(group)
            become()

        return preexec

    def get_state(self) -> dict:
        ours = {"gpus": list(self.gpus), "runtime": self.runtime}
        return super().get_state() | {name: value for name, value in ours.items() if value}

    def load_state(self, state) -> None:
        super().load_state(state)
        self.runtime = state.get("runtime", "")
        if self.server:  # else the hub died while it wrote down that this server is gone
            self.gpus = tuple(state.get("gpus", ()))
            started = self.orm_spawner.started.replace(tzinfo=timezone.utc).timestamp()
            SLOTS.restore(self._log_name, self.gpus, started)

    async def run_post_stop_hook(self) -> None:
        """JupyterHub calls this when the server is gone, however it went: the GPUs come back."""
        try:
            await maybe_future(super().run_post_stop_hook())
        finally:
            await self.release()

    async def release(self) -> None:
        """End what the server left running and give its GPUs back, whatever fails meanwhile.

        What takes long runs beside the hub's loop, which goes on to answer everybody else.
        """
        runtime, self.runtime = self.runtime, ""
        try:
            await asyncio.to_thread(end_leftovers, self.groups, self._log_name, self.mark)
            if self.groups is not None:
                self.groups.remove_empty()
        except Exception:
            self.log.exception("Not all that %s left running could be ended", self._log_name)
        finally:
            SLOTS.free(self._log_name)
            self.gpus = ()
        await asyncio.to_thread(remove, runtime)


class OneAccountGpuSpawner(GpuLease, SimpleLocalProcessSpawner):
    """Every server runs under the hub's own Unix account: learners are not kept apart."""

    account = None

    def home(self) -> str:
        return self.home_dir


class GpuSpawner(GpuLease):
    """Every server runs under its learner's own Unix account."""

    @property
    def account(self) -> str:
        return self.user.name

    def home(self) -> str:
        return os.path.expanduser(f"~{self.user.name}")

    async def start(self) -> tuple:
        accounts.ensure(self.user.name, self.settings.group, self.settings.create_accounts)
        return await super().start()


def ended(how: str, last_words: str) -> gpu_slots.Refused:
    """The refusal of a server that ended while it started, with its ``last_words``."""
    lines = [line.strip() for line in last_words.splitlines() if line.strip()]
    words = cut(" ".join(lines[-LINES:]), WORDS, WORDS)
    reason = f"It said at the end: {words}" if lines else "It gave no reason."
    message = f"Your server ended while it started ({how}). {reason}"
    return gpu_slots.Refused(500, "ended", message)


def is_listening(pid: int, port: int) -> bool:
    """Whether ``pid``, or a process below it, listens at ``port``: not whoever else does.

    A process that is just ending belongs to root already: a hub of another account is denied it.
    """
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        keeper = psutil.Process(pid)
        for process in (keeper, *keeper.children(recursive=True)):
            for socket in process.net_connections("tcp"):
                if socket.status == psutil.CONN_LISTEN and socket.laddr.port == port:
                    return True
    return False


def end_leftovers(groups, owner, mark) -> None:
    """Kill what a server left running: kernels and workers that still hold a GPU."""
    try:
        if groups is not None:
            groups.kill(owner)
    finally:
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get(MARK) == mark:
                    process.kill()
