"""What this machine may lack, and the one line that says how many tests are left out for it.

A test says what it needs: ``@pytest.mark.needs("root")``, or by a fixture of ``BY_FIXTURE``. What
is left out for one reason is a line at the end of the report of pytest, with its number. Where
nothing may be missing, as root on CI with Debian, it fails instead.
"""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest
from programs import program

from d2lmgpu.machine import hardware
from d2lmgpu.process.cluster import box

BY_FIXTURE = {"browser": "chromium", "fox": "firefox", "real_files": "images", "small_home": "root"}


def _program(*names, package):
    def lacking():
        return "" if any(map(shutil.which, names)) else f"no {names[-1]}: install {package}"

    return lacking


def _chromium():
    chromium = program("chromium")
    return "" if chromium.is_there() else chromium.NONE


def _images():
    folder, package = Path("/usr/share/datasets/fashion-mnist"), "dataset-fashion-mnist"
    return "" if folder.is_dir() else f"no {folder}: install Debian's package {package}"


def _cores():
    return "" if hardware.num_cores() > 1 else "no second core: two devices cannot run at once"


def _root():
    return "not root: accounts, disks and networks of a test's own take root"


NEEDS = {
    "chromium": _chromium,
    "firefox": _program("firefox-esr", "firefox", package="your system's firefox-esr or firefox"),
    "node": _program("node", package="Node.js 20 or newer"),
    "git": _program("git", package="your system's git"),
    "images": _images,
    "cores": _cores,
    "root": lambda: _root() if os.geteuid() else "",
    "useradd": _program("useradd", package="your system's package of account tools"),
    "hosts": lambda: "; ".join(box.missing()) and "no hosts in a box: " + "; ".join(box.missing()),
    "slurm": lambda: (
        "; ".join(box.missing(True)) and "no Slurm in a box: " + "; ".join(box.missing(True))
    ),
}


@cache
def lacking(name: str) -> str:
    """Why a test that needs ``name`` cannot run here; "" if it can."""
    return NEEDS[name]()


def needs(item) -> list[str]:
    """What a test says that it needs, by its marks and by its fixtures."""
    marked = [name for mark in item.iter_markers("needs") for name in mark.args]
    return marked + [need for fixture, need in BY_FIXTURE.items() if fixture in item.fixturenames]


def may_lack() -> bool:
    """Whether a test may be left out: not as root in CI on Debian, where all can be installed."""
    return not (os.environ.get("CI") and not os.geteuid() and shutil.which("apt-get"))


def leave_out(item) -> None:
    """Leave a test out, from one place for all, so that pytest folds them into one line."""
    reasons = [reason for name in needs(item) if (reason := lacking(name))]
    if reasons and may_lack():
        pytest.skip(f"left out: {reasons[0]}")
    if reasons:
        pytest.fail(f"nothing may be left out here: {reasons[0]}", pytrace=False)
