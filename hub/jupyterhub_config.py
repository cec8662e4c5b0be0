"""JupyterHub on one GPU server, without containers. Start it by ``make hub`` (hub/start.py).

All that an instructor changes comes from ``HUB_…`` variables (settings.py; README.md lists them).
"""

import logging
import math
import os
import shutil
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import course  # noqa: E402
import limits  # noqa: E402
import settings as hub_settings  # noqa: E402
from spawner import GpuSpawner, OneAccountGpuSpawner  # noqa: E402

c = get_config()  # noqa: F821
settings = hub_settings.read()
state = Path(settings.state)
state.mkdir(mode=0o700, parents=True, exist_ok=True)
# Not inherited by what the hub starts: neither the proxy nor a server needs it.
os.environ.pop("HUB_PASSWORD", None)

# --- Where it listens ---------------------------------------------------------------------------
c.JupyterHub.bind_url = settings.url
c.JupyterHub.ssl_key, c.JupyterHub.ssl_cert = settings.tls_key, settings.tls_cert
# Only the proxy is for the world; the hub and the proxy's own door stay on loopback. Servers that
# are jobs on other machines reach the hub at one address more.
c.JupyterHub.hub_bind_url = f"http://{settings.hub_address}:{settings.port + 1}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{settings.port + 2}"
c.ConfigurableHTTPProxy.command = [str(FOLDER / "node_modules/.bin/configurable-http-proxy")]
c.ConfigurableHTTPProxy.pid_file = str(state / "proxy.pid")

# --- What its pages say -------------------------------------------------------------------------
c.JupyterHub.template_paths = [str(FOLDER / "templates")]  # before JupyterHub's own

# --- What it remembers --------------------------------------------------------------------------
# On disk, so that a hub restart finds its servers and their GPUs again; only the owner may read
# the folder, which also holds the key that signs cookies.
c.JupyterHub.db_url = f"sqlite:///{state}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(state / "cookie_secret")
# Stopping the hub of a class, to update it say, must not end a running training; stopping a
# try-out must leave nothing behind.
c.JupyterHub.cleanup_servers = settings.accounts == "one"

# --- Who may log in -----------------------------------------------------------------------------
c.JupyterHub.authenticator_class = settings.auth
c.SharedPasswordAuthenticator.user_password = settings.password or None
c.Authenticator.admin_users = set(settings.admins.split())
if settings.everybody:
    c.Authenticator.allow_all = True
else:
    c.Authenticator.allowed_users = settings.allowed_users
    # Else whoever was ever admitted stays so when the name is taken off the list.
    c.Authenticator.allow_existing_users = False

# --- How a browser is kept honest ---------------------------------------------------------------
# JupyterHub itself refuses cross-site requests and framing; these close what it leaves open.
headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}
if settings.subdomain_host:
    # Each server in a domain of its own, so that one learner's page is another site to another's
    # browser; the host prefix keeps such a page from planting cookies.
    c.JupyterHub.subdomain_host = settings.subdomain_host
    c.JupyterHub.cookie_host_prefix_enabled = True
# Other sites' forms and frames get no cookie, in browsers that do not do so by themselves too.
cookies = {"samesite": "Lax"}
if settings.tls_key:
    cookies["secure"] = True
    # A browser that has seen this hub by TLS once never asks in the clear again.
    headers["Strict-Transport-Security"] = "max-age=31536000"
c.JupyterHub.tornado_settings = {"headers": headers, "cookie_options": cookies}
# JupyterHub logs session ids with this message.
logging.getLogger("tornado.application").addFilter(
    lambda record: "xsrf cookie for" not in record.getMessage()
)
# A learner's own configuration could switch off checks of the server that guards the learner.
c.Spawner.disable_user_config = True

# --- The course ---------------------------------------------------------------------------------
own = settings.accounts == "own"
published = course.read()
# A plain login shows the chapters. A class whose course is not yet published has none to show.
if not own or published.is_published:
    c.JupyterHub.default_url = published.start
else:
    print(f"No course at {published.url}: see the line CHANGE in _config.yml", file=sys.stderr)
in_place = {}
if not own:
    repository = state / "course.git"
    try:
        course.copy(repository, published.branch)
    except course.CourseError as error:
        sys.exit(f"The hub does not start: {error}")
    in_place = course.in_place_of(published.url, repository)

# --- How a server starts ------------------------------------------------------------------------
slurm = settings.spawner == "slurm"
if slurm:
    import slurm_spawner

    c.JupyterHub.spawner_class = slurm_spawner.CourseSlurmSpawner
    c.CourseSlurmSpawner.settings = settings
    c.CourseSlurmSpawner.home = f"{state}/home"
    c.CourseSlurmSpawner.own_accounts = own
    c.CourseSlurmSpawner.batch_script = slurm_spawner.SCRIPT
    # By its whole path: a job's PATH, with which it is called, has no folder of root's.
    become = f"{shutil.which('runuser')} -u {{username}} --"
    c.CourseSlurmSpawner.exec_prefix = become if own else ""
    # A job may wait for long, and each look at it is a question to Slurm.
    c.CourseSlurmSpawner.start_timeout, c.CourseSlurmSpawner.poll_interval = 3600, 30
    c.CourseSlurmSpawner.batchspawner_singleuser_cmd = (
        f"{settings.python} -m batchspawner.singleuser"
    )
    c.CourseSlurmSpawner.req_nprocs = f"{math.ceil(settings.cpus)}" if settings.cpus else ""
    c.CourseSlurmSpawner.req_memory = f"{settings.memory >> 20}M" if settings.memory else ""
else:
    c.JupyterHub.spawner_class = GpuSpawner if own else OneAccountGpuSpawner
c.GpuLease.settings = settings
c.OneAccountGpuSpawner.home_dir_template = f"{state}/home/{{username}}"
# The Python that has the course installed; its kernel `python3` is the one of every notebook.
python, server = settings.python, str(FOLDER / "learner/server.py")
c.Spawner.cmd = [python, str(FOLDER / "keeper.py"), python, server]
if slurm:  # which ends what a job has started; batchspawner wants a program
    c.Spawner.cmd = [server]
c.Spawner.default_url = "/lab"
# What learners open is theirs: the hub's log gets the servers' warnings only.
c.Spawner.args = ["--log-level=WARN", f"--Work.silent_seconds={settings.silent_timeout}"]
for repository in [f"{published.url}#{published.branch}", *settings.repositories.split()]:
    c.Spawner.args.append(f"--LaunchLinks.repositories={repository}")
if not own and os.geteuid() == 0:
    c.Spawner.args.append("--allow-root")  # asked for by HUB_ACCOUNTS=one; loopback only
# What a server takes from the hub's environment: nothing secret. LD_LIBRARY_PATH is where some
# systems name the GPU driver's libraries.
c.Spawner.env_keep = ["LANG", "LC_ALL", "LD_LIBRARY_PATH", "D2LMGPU_DATA", "D2LMGPU_PROFILE"]
c.Spawner.env_keep += ["SLURM_CONF"] if slurm else []
# How often the hub learns who was active, from servers and from the proxy, for the culler.
look_seconds = max(1, min(300, settings.idle_timeout // 4))
c.JupyterHub.last_activity_interval = look_seconds
c.Spawner.environment = {
    "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin",
    # labconfig/: chapters that are Markdown files open as notebooks, not as text; no news.
    "JUPYTER_CONFIG_PATH": str(FOLDER),
    "JUPYTERHUB_ACTIVITY_INTERVAL": str(look_seconds),
    **in_place,
}
# A class that starts at once shares the machine's cores: ten JupyterLabs take a while.
c.Spawner.start_timeout = c.Spawner.http_timeout = 180
# A server is asked to stop, then told to: its GPUs are back within seconds.
c.LocalProcessSpawner.interrupt_timeout = c.LocalProcessSpawner.term_timeout = 5
# How soon a server that was killed gives its GPUs back.
c.Spawner.poll_interval = 5

# --- Memory, CPU --------------------------------------------------------------------------------
c.Spawner.mem_limit = settings.memory or None  # also what the bar in JupyterLab counts against
c.Spawner.cpu_limit = settings.cpus or None
if (settings.memory or settings.cpus) and not slurm:
    try:
        c.GpuLease.groups = limits.Groups.open()
    except limits.Unavailable as reason:
        print(f"HUB_MEMORY and HUB_CPUS do not bind here: {reason}", file=sys.stderr)
        c.GpuLease.no_limits = str(reason)

# --- Forgotten servers --------------------------------------------------------------------------
# After HUB_IDLE_TIMEOUT seconds without activity, and after HUB_MAX_AGE in any case: a browser
# tab left open counts as activity.
culler = [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={settings.idle_timeout}"]
culler.append(f"--max-age={settings.max_age}")
scopes = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
c.JupyterHub.services = [{"name": "idle-culler", "command": culler}]
c.JupyterHub.load_roles = [{"name": "idle-culler", "services": ["idle-culler"], "scopes": scopes}]
