"""The package's rooms: imports go one way, and frameworks stay in theirs."""

import ast
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tracked import tracked

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "d2lmgpu"

# A room imports those on lines above its own, and itself. Rooms on one line do not know each other.
ORDER = [
    ["machine"],
    ["process"],
    ["launch"],
    ["data"],
    ["memory"],
    ["collectives"],
    ["figures"],
    ["records"],
    ["backend"],
    ["torch", "mxnet"],
    ["costmodel"],
    ["watch"],
    ["predictions"],
    ["lab"],
    ["course"],
    ["__main__"],
]
FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}

FRAMEWORKS = {"torch", "mxnet", "torchvision", "d2l"}
AT_HOME = ("torch/", "mxnet/")
ELSEWHERE = {  # a file or a room that may import a framework -> why
    "backend/": "it lets torchvision be imported beside another build of torch",
    "collectives/ring.py": "the ring between processes sends with torch.distributed",
    "costmodel/probe.py": "the probe in launch's worker processes waits for its peers",
    "course/exercises/processes.py": "answers run on ranks, with torch.distributed between them",
    "course/exercises/ranks.py": "what ranks do beside an answer, by PyTorch's own means",
    "course/gpu_check.py": "ranks on one GPU are checked with DistributedDataParallel",
    "process/": "a worker sets torch.distributed up before the caller's function runs, the caller "
    "holds the store in which the workers meet, a checkpoint holds PyTorch's tensors",
    "watch/": "what a reader's script calls of PyTorch is watched from before its first line",
}


def modules():
    """{module: its file} of the whole package."""
    files = {}
    for path in tracked("d2lmgpu"):
        if path.suffix == ".py":
            parts = path.relative_to(ROOT).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def imports(path):
    """Every name that a file imports, also inside functions and by import_module("...")."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func) and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value
            elif isinstance(name, ast.JoinedStr) and name.values[0].value == "d2lmgpu.":
                yield "d2lmgpu.torch"  # or mxnet: a backend by its name


def room(name):
    """The room of a module of the package: d2lmgpu.lab.view is in lab."""
    return name.split(".")[1]


def inside(path):
    return path.relative_to(PACKAGE).as_posix()


def edges():
    """(file, module of it, module of the package that it imports)."""
    files = modules()
    for module, path in files.items():
        for name in imports(path):
            while name.startswith("d2lmgpu.") and name not in files:
                name = name.rpartition(".")[0]
            if name.startswith("d2lmgpu."):
                yield inside(path), module, name


def test_every_room_has_its_floor():
    rooms = {room(module) for module in modules() if "." in module}
    assert rooms == set(FLOOR)


def test_no_import_goes_up():
    up = {
        (file, room(name))
        for file, module, name in edges()
        if room(name) != room(module) and FLOOR[room(name)] >= FLOOR[room(module)]
    }
    assert up == set()


def test_no_import_comes_back():
    graph = defaultdict(set)
    for _, module, name in edges():
        if module != name:
            graph[module].add(name)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_frameworks_are_imported_where_they_live():
    strangers = {
        inside(path)
        for path in modules().values()
        if any(name.split(".")[0] in FRAMEWORKS for name in imports(path))
        and not inside(path).startswith(AT_HOME)
    }
    unexpected = {file for file in strangers if not file.startswith(tuple(ELSEWHERE))}
    assert unexpected == set()
    assert all(any(file.startswith(place) for file in strangers) for place in ELSEWHERE)


def test_an_edge_upward_and_a_cycle_are_seen(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        "import d2lmgpu.lab.view\n"
        "def late():\n"
        "    from d2lmgpu.course import doctor\n"
        "    importlib.import_module('d2lmgpu.__main__')\n"
        "    import_module(f'd2lmgpu.{name}')\n"
    )
    assert set(imports(file)) == {
        "d2lmgpu.lab.view",
        "d2lmgpu.course.doctor",
        "d2lmgpu.__main__",
        "d2lmgpu.torch",
    }


def test_every_file_on_the_map_is_in_its_room():
    """A row names rooms first, then what is in them: `name.py`, or words before a colon."""
    rows = [line.split("|") for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines()]
    rows = [row for row in rows if len(row) == 5 and "`" in row[1]]
    named = 0
    for _, places, *cells, _ in rows:
        rooms = [place for place in re.findall("`([^`]+)`", places) if place.endswith("/")]
        for file in re.findall(r"`([\w/-]+\.py)`", "".join(cells)):
            at = [base / room / file for room in rooms for base in (PACKAGE, ROOT)] + [ROOT / file]
            assert any(path.is_file() for path in at), f"CONTRIBUTING.md: no {file} in {places}"
            named += 1
    assert named > 5
