"""The packages of this environment, used for others: what needs what, and copies of them."""

import zipfile
from importlib.metadata import distribution, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OF_PIP = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")  # which it writes itself


def brought_by(names):
    """All that these need, and what that needs, on this machine: as their metadata says."""
    known, waiting = set(), [(name, frozenset([""])) for name in names]
    while waiting:
        name, extras = requirement = waiting.pop()
        if requirement in known:
            continue
        known.add(requirement)
        for need in map(Requirement, requires(name) or []):
            if not need.marker or any(need.marker.evaluate({"extra": e}) for e in extras):
                waiting.append((canonicalize_name(need.name), frozenset(need.extras or [""])))
    return {name for name, _ in known}


def files(name):
    """The files of a package in site-packages, as paths in there: no commands."""
    listed = distribution(name).files
    return [path for path in listed if ".." not in path.parts and path.locate().exists()]


def link(name, site_packages):
    """Let the environment of ``site_packages`` have a package as this one has it."""
    for path in files(name):
        (site_packages / path).parent.mkdir(parents=True, exist_ok=True)
        (site_packages / path).symlink_to(path.locate())


def wheel(name, folder):
    """Write the wheel that a package was installed from, as an index serves it."""
    package = distribution(name)
    (about,) = {path.parts[0] for path in files(name) if path.name == "WHEEL"}
    (tag, *_) = [
        line[5:] for line in package.read_text("WHEEL").splitlines() if line[:5] == "Tag: "
    ]
    title = about.removesuffix(".dist-info")
    Path(folder).mkdir(parents=True)
    with zipfile.ZipFile(Path(folder, f"{title}-{tag}.whl"), "w") as archive:
        for path in files(name):
            if path.suffix != ".pyc" and path.name not in OF_PIP:
                archive.write(path.locate(), str(path))
        rows = [f"{path},," for path in archive.namelist()]
        archive.writestr(f"{about}/RECORD", "\n".join([*rows, f"{about}/RECORD,,", ""]))
