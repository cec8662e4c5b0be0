"""What a learner does in a browser, from the login to an open notebook, as steps of a test."""

import json
import subprocess

import nbformat
from running_hub import RunningHub
from servers import LAB_SETTINGS

ADA = "ada"


def lab_hub(folder, **options):
    """A ``RunningHub`` whose JupyterLab lets a test wait for it."""
    lab_settings = folder / "jupyter" / "labconfig"
    lab_settings.mkdir(parents=True)
    name = "default_setting_overrides.json"
    (lab_settings / name).write_text(json.dumps(LAB_SETTINGS[name]))
    more = (
        f"c.Spawner.environment['JUPYTER_CONFIG_PATH'] += ':' + {str(lab_settings.parent)!r}\n"
        "c.Spawner.args.append('--LabApp.expose_app_in_browser=True')\n"
    )
    return RunningHub(folder, more, **options)


def write_notebook(path, sources):
    """A notebook with a title and these code cells."""
    cells = [nbformat.v4.new_markdown_cell("# A chapter")]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    }
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)


def publish(folder):
    """Make ``folder`` the repository of a course."""
    git = ["git", "-c", "user.name=Course", "-c", "user.email=course@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)


def log_in(page, hub):
    page.fill("#username_input", ADA)
    page.fill("#password_input", hub.password)
    page.click("#login_submit")


def choose(page, gpus):
    """Choose so many GPUs in the form; returns what the form said before."""
    page.locator("#spawn_form [type=submit]").wait_for()  # it comes last: the form is complete
    text = page.locator("#spawn_form").text_content()
    page.select_option("#gpus", str(gpus))
    page.click("#spawn_form [type=submit]")
    return text
