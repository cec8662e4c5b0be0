"""The spawner on a cluster: each learner's server is a job, and Slurm knows limits and leases.

``batchspawner`` submits, asks and cancels. Here are the form, what of it may reach the job, and a
door of batchspawner's that is made narrower.
"""

import asyncio
import os
import re
import shlex
import subprocess
from html import escape
from typing import NoReturn

import accounts
from batchspawner import SlurmSpawner
from batchspawner.api import BatchSpawnerAPIHandler
from gpu_slots import NO_LIMIT, WITHOUT, Refused, requested
from jupyterhub.apihandlers import APIHandler, default_handlers
from jupyterhub.utils import can_connect
from settings import Settings
from spawner import ended
from tornado import web
from traitlets import Bool, Instance, Unicode, default

MINUTES = 60  # that the form proposes
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")  # goes into a folder's name and a shell
MOST_GPUS = 8  # that the form lists where no HUB_GPUS_PER_LEARNER says how many
ASKING = ("PATH", "LANG", "SLURM_CONF")  # of the hub's environment, what asking Slurm takes
ANYWHERE = "0.0.0.0"  # where a server listens before batchspawner knows its node
LOOK_SECONDS = 2  # between two looks at a job whose server is not up yet
LOG = ".course-server.log"  # of a job, in its learner's home
OPTIONS = ("partition", "gpus", "minutes")
SCRIPT = f"""#!/bin/bash
#SBATCH --output={{{{homedir}}}}/{LOG}
"""
SCRIPT += """#SBATCH --job-name=course
#SBATCH --chdir={{homedir}}
#SBATCH --export={{keepvars}}
#SBATCH --partition={{partition}}
#SBATCH --time={{minutes}}
{% if gpus %}#SBATCH --gres=gpu:{{gpus}}
{% endif %}{% if nprocs %}#SBATCH --cpus-per-task={{nprocs}}
{% endif %}{% if memory %}#SBATCH --mem={{memory}}
{% endif %}
exec {{cmd}}
"""


class CourseSlurmSpawner(SlurmSpawner):
    """A form for partition, GPUs and time; junk is refused before it reaches a script."""

    settings = Instance(Settings, config=True, help="The hub's settings.")
    own_accounts = Bool(True, config=True, help="Whether jobs run under the learners' accounts.")
    home = Unicode(config=True, help="The homes of learners who have no account, on all nodes.")

    @default("req_homedir")
    def _home_of_the_job(self):
        """Also after a restart of the hub, which then asks for the jobs that still run."""
        if self.own_accounts:
            return super()._req_homedir_default()
        return os.path.join(self.home, self.user.name)

    async def run_command(self, cmd, input=None, env=None) -> str:
        """Run it with nothing secret: a command may run under the learner's account."""
        if env is None:
            env = {name: os.environ[name] for name in ASKING if name in os.environ}
        return await super().run_command(cmd, input=input, env=env)

    async def partitions(self) -> list[str]:
        """The names of the partitions that are up, the default one first. Refused without any."""
        command = "sinfo --noheader --format='%P %a'"
        try:
            rows = [row.split() for row in (await self.run_command(command)).splitlines()]
        except RuntimeError as error:
            raise Refused(503, "no-slurm", f"Slurm does not answer: {error}") from None
        names = [name for name, state in rows if state == "up"]
        if not names:
            raise Refused(503, "no-partition", "No partition of the cluster takes jobs now.")
        return [name.rstrip("*") for name in sorted(names, key=lambda name: name[-1] != "*")]

    async def get_options_form(self) -> str:
        partitions = "".join(f"<option>{escape(n)}</option>" for n in await self.partitions())
        most = self.settings.gpus_per_learner
        most = MOST_GPUS if most == NO_LIMIT else most
        gpus = "".join(f"<option>{count}</option>" for count in range(most + 1))
        return (
            '<label for="partition">Partition</label>'
            f'<select class="form-control" id="partition" name="partition">{partitions}</select>'
            '<label for="gpus">How many GPUs?</label>'
            f'<select class="form-control" id="gpus" name="gpus">{gpus}</select>'
            '<label for="minutes">For how many minutes?</label>'
            '<input class="form-control" id="minutes" name="minutes" type="number" min="1"'
            f' value="{MINUTES}">'
            "<p>Your server is a job of Slurm. It may wait in the queue, and ends when its time"
            f" is over: a short one starts sooner.</p><p>{escape(WITHOUT)}</p>"
        )

    def run_options_from_form(self, form) -> dict:
        """Form data ``{"gpus": ["2"], …}`` -> start options; junk is refused later."""
        texts = {name: values[0] for name, values in form.items() if name in OPTIONS}
        return {name: int(t) if t.isdecimal() else t for name, t in texts.items()}

    def options_from_query(self, query) -> NoReturn:
        """Refuse options in an address: any site's link could then submit jobs in your name."""
        raise Refused(400, "choose-here", "Choose the GPUs here, not in the address.")

    @staticmethod
    def apply_user_options(spawner, options):
        """Refuse what the form does not ask for: batchspawner puts all of it into the script."""
        if not isinstance(options, dict) or set(options) - set(OPTIONS):
            raise Refused(400, "bad-options", f"{options!r}: give {', '.join(OPTIONS)}.")
        requested({"gpus": options.get("gpus", 0)})
        minutes = options.get("minutes", MINUTES)
        if type(minutes) is not int or minutes < 1:
            raise Refused(400, "bad-options", f"minutes={minutes!r}: give a whole number from 1.")

    def user_env(self, env) -> dict[str, str]:
        """Whose the job is: batchspawner looks that up among the Unix accounts."""
        if self.own_accounts:
            return super().user_env(env)
        return env | {"HOME": self.req_homedir, "SHELL": "/bin/bash"}

    def state_gethost(self) -> str:
        """The address of the job's node, as Slurm has it: a name need mean nothing here."""
        command = ["scontrol", "show", "node", "--oneliner", super().state_gethost()]
        node = subprocess.check_output(command, text=True)
        return re.search(r" NodeAddr=(\S+)", node)[1]

    async def start(self) -> tuple:
        if not NAME.fullmatch(self.user.name):
            raise Refused(403, "no-account", f"{self.user.name!r} cannot be the name of a folder.")
        options = {"gpus": 0, "minutes": MINUTES} | self.user_options
        known = await self.partitions()
        if options.setdefault("partition", known[0]) not in known:
            raise Refused(400, "no-partition", f"There is {', '.join(known)}: choose one of them.")
        most = self.settings.gpus_per_learner
        if options["gpus"] > most:
            raise Refused(400, "too-many", f"{options['gpus']} GPUs: a learner gets {most}.")
        self.user_options = options
        if self.own_accounts:
            name, setting = self.user.name, self.settings
            accounts.ensure(name, setting.group, setting.create_accounts)
        else:
            os.makedirs(self.req_homedir, mode=0o700, exist_ok=True)
        starting = asyncio.ensure_future(super().start())
        try:
            # Once a job runs, batchspawner waits for its port, and no longer looks at the job.
            while not (await asyncio.wait([starting], timeout=LOOK_SECONDS))[0]:
                if self.ip != ANYWHERE:
                    await self.must_live()
            address = await starting
            while not await asyncio.to_thread(can_connect, *address):
                await self.must_live()
                await asyncio.sleep(LOOK_SECONDS)
            return address
        except RuntimeError as error:
            raise Refused(503, "no-job", f"Slurm: {error}") from error
        finally:
            starting.cancel()

    async def must_live(self) -> None:
        """Refuse, with what its log says at the end, if the job is over before its server is up."""
        if await self.poll() is None:
            return
        # As the learner: what is in that home is the learner's, also what the file's name leads to.
        become = self.exec_prefix.format(username=self.user.name)
        log = shlex.quote(os.path.join(self.req_homedir, LOG))
        try:
            last_words = await self.run_command(f"{become} tail --bytes=2000 {log}")
        except RuntimeError as error:
            last_words = str(error)
        raise ended(f"its log is {LOG}", last_words)


class PortOnly(APIHandler):
    """Where a server tells its port.

    batchspawner's own handler sets whatever attribute it is told, so a learner could change the
    commands that the hub runs.
    """

    @web.authenticated
    def post(self) -> None:
        spawners = self.current_user.spawners.values() if self.current_user else ()
        token, port = self.get_auth_token(), (self.get_json_body() or {}).get("port")
        own = [spawner for spawner in spawners if spawner.api_token == token]
        if not own or type(port) is not int or not 1024 <= port < 65536:
            raise web.HTTPError(400, "A server tells its own port here, and nothing else.")
        own[0].port = port
        self.set_status(201)


default_handlers[:] = [
    (path, PortOnly if handler is BatchSpawnerAPIHandler else handler)
    for path, handler in default_handlers
]
