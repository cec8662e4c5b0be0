"""A group whose members' accounts exist on this machine only while tests run."""

import subprocess
from contextlib import contextmanager

GROUP = "d2lmgpu-test"


@contextmanager
def learners_group(*names):
    """The group :data:`GROUP`; accounts with these ``names`` are removed at its end.

    What a run that was killed has left is removed first. By force, since ``userdel`` refuses to
    remove an account of which a process is still ending.
    """
    remove(names)
    subprocess.run(["groupadd", GROUP], check=True)
    try:
        yield
    finally:
        remove(names)


def remove(names):
    for name in names:
        subprocess.run(["userdel", "--force", "--remove", name], capture_output=True)
    subprocess.run(["groupdel", GROUP], capture_output=True)
