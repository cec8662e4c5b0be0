"""The spawner: a GPU choice at start, a lease while the server runs, nothing left behind after it.

Two classes share ``GpuLease``: ``GpuSpawner`` runs each learner's server under the learner's own
Unix account; ``OneAccountGpuSpawner`` runs all under the hub's, for a hub on loopback.
"""

import asyncio
import os
from html import escape

import accounts
import gpu_slots
import limits
import psutil
from gpu_slots import Refused
from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner, SpawnException
from traitlets import Any, Bool, Integer, Unicode, default

SLOTS = gpu_slots.GpuSlots()  # one table for the hub's one process
MARK = "D2LMGPU_LEASE"  # in the environment of everything that a server starts


class GpuLease(LocalProcessSpawner):
    """Adds the lease of GPUs, the limits and the clean-up to a spawner of local processes."""

    simulated_gpus = Integer(
        0, config=True, help="Hand out this many simulated GPUs instead of the machine's."
    )
    most_gpus = Integer(
        None, allow_none=True, config=True, help="At most so many GPUs for one learner."
    )
    groups = Any(
        None, allow_none=True, config=True, help="limits.Groups; None: no limit can be set here."
    )
    no_limits = Unicode("", config=True, help="Why no limit can be set, for the form.")
    gpus = ()  # the ids of the lease
    wanted = 0  # what the start options asked for
    runtime = ""  # the folder of what the server writes for itself

    @default("options_form")
    def _options_form(self):
        return gpu_form

    @default("options_from_form")
    def _options_from_form(self):
        return options_from_form

    @default("apply_user_options")
    def _apply_user_options(self):
        return apply_user_options

    def options_from_query(self, query):
        """Refuse a GPU count in an address: any site's link could then take GPUs in your name.

        JupyterHub shows the form instead, with these words above it.
        """
        raise refused(Refused(400, "choose-here", "Choose the GPUs here, not in the address."))

    async def present(self):
        """The GPUs of this machine, now."""
        if self.simulated_gpus:
            return tuple(f"simulated-{i}" for i in range(self.simulated_gpus))
        return await asyncio.to_thread(gpu_slots.present_gpus)

    async def start(self):
        try:
            present = await self.present() if self.wanted else ()
            self.gpus = SLOTS.lease(self._log_name, self.wanted, present, self.most_gpus)
        except Refused as refusal:
            raise refused(refusal) from None
        self.runtime = accounts.runtime_folder(self.account)
        return await super().start()

    def get_env(self):
        env = super().get_env()
        # Temporary files as well: they go with the server, even if it and its workers are killed.
        env["JUPYTER_RUNTIME_DIR"] = env["TMPDIR"] = self.runtime
        env.update(gpu_slots.environment(self.gpus, bool(self.simulated_gpus)))
        env[MARK] = self.mark
        return env

    @property
    def mark(self):
        """One text per server of this hub, the same after a hub restart."""
        return f"{self.hub.api_url} {self._log_name}"

    def make_preexec_fn(self, name):
        become = super().make_preexec_fn(name)
        if self.groups is None:
            return become
        group = self.groups.make(self._log_name, self.mem_limit, self.cpu_limit)

        def preexec():
            limits.enter(group)
            become()

        return preexec

    def get_state(self):
        state = super().get_state()
        if self.gpus:
            state["gpus"] = list(self.gpus)
        if self.runtime:
            state["runtime"] = self.runtime
        return state

    def load_state(self, state):
        super().load_state(state)
        self.runtime = state.get("runtime", "")
        if self.server:  # else the hub died while it wrote down that this server is gone
            self.gpus = tuple(state.get("gpus", ()))
            SLOTS.restore(self._log_name, self.gpus)

    def clear_state(self):
        """JupyterHub calls this when the server is gone, however it went: the GPUs come back."""
        super().clear_state()
        self.end_leftovers()
        accounts.remove(self.runtime)
        SLOTS.free(self._log_name)
        self.gpus, self.runtime = (), ""

    def end_leftovers(self):
        """Kill what the server left running: kernels and workers that still hold a GPU."""
        if self.groups is not None:
            self.groups.kill(self._log_name)
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark:
                    process.kill()
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue


class OneAccountGpuSpawner(GpuLease, SimpleLocalProcessSpawner):
    """Every server runs under the hub's own Unix account: learners are not kept apart."""

    account = None

    def home(self):
        return self.home_dir


class GpuSpawner(GpuLease):
    """Every server runs under its learner's own Unix account, which must be in ``group``."""

    group = Unicode("learners", config=True, help="The Unix group of those who get a server.")
    create_accounts = Bool(False, config=True, help="Create a missing account at first start.")

    @property
    def account(self):
        return self.user.name

    def home(self):
        return os.path.expanduser(f"~{self.user.name}")

    async def start(self):
        try:
            accounts.ensure(self.user.name, self.group, self.create_accounts)
        except Refused as refusal:
            raise refused(refusal) from None
        return await super().start()


def refused(refusal):
    """The refusal as JupyterHub shows it: the status by REST, the words on the spawn page."""
    return SpawnException(str(refusal), reason=refusal.reason, status_code=refusal.status)


def options_from_form(form):
    """Form data ``{"gpus": ["2"]}`` -> start options ``{"gpus": 2}``; the lease refuses junk."""
    text = form.get("gpus", ["0"])[0]
    return {"gpus": int(text) if text.isdecimal() else text}


def apply_user_options(spawner, options):
    """Take over the start options, from the form or by REST. Refuses junk (400)."""
    try:
        spawner.wanted = gpu_slots.requested(options)
    except Refused as refusal:
        raise refused(refusal) from None


async def gpu_form(spawner):
    """The form: how many GPUs, how many are free now, and which limits hold."""
    try:
        present, trouble = await spawner.present(), ""
    except Refused as refusal:
        present, trouble = (), str(refusal)
    free = len(SLOTS.free_gpus(present))
    counts = gpu_slots.choices(len(present), spawner.most_gpus)
    chosen = max(count for count in counts if count <= min(free, 2))
    options = "".join(
        f'<option value="{count}"{" selected" if count == chosen else ""}'
        f"{' disabled' if count > free else ''}>{count}</option>"
        for count in counts
    )
    kind = "simulated GPUs (shares of the CPU)" if spawner.simulated_gpus else "GPUs"
    notes = [f"{free} of {len(present)} {kind} are free now. With 0, chapters use the CPU's cores."]
    notes[:0] = filter(None, [trouble, accounts.little_room(spawner.home())])
    if spawner.no_limits:
        notes.append(f"Memory and CPU are not limited here: {spawner.no_limits}.")
    paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f'<label for="gpus">How many {escape(kind)}?</label>'
        f'<select class="form-control" id="gpus" name="gpus">{options}</select>{paragraphs}'
    )
