"""The page of the API has every public name, and each docstring the arguments that there are."""

import builtins
import json
import re
from pathlib import Path

import pytest
from test_backends_agree import FRAMEWORKS, in_own_process

PAGE = Path(__file__).resolve().parents[1] / "chapters" / "reference" / "api.md"
# A name, and after ":members:" which of its methods are shown: all, without names.
ENTRY = re.compile(r"^\.\. auto\w+:: (\S+)(?:\n +:members:(.*))?$", re.MULTILINE)
TEXT = PAGE.read_text(encoding="utf-8")
ENTRIES = [match.groups() for match in ENTRY.finditer(TEXT)]
HEADER = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
# Where a reader's names are: those in __all__, else what is defined there.
MODULES = [
    "d2lmgpu.launch",
    "d2lmgpu.lab",
    "d2lmgpu.predictions",
    "d2lmgpu.data.datasets",
    "d2lmgpu.machine.turns",
    "d2lmgpu.collectives.schedules",
    "d2lmgpu.collectives.execution",
    "d2lmgpu.collectives.operations",
    "d2lmgpu.collectives.ring",
    "d2lmgpu.costmodel.model",
    "d2lmgpu.costmodel.presets",
    "d2lmgpu.costmodel.forecast",
    "d2lmgpu.costmodel.measure",
    "d2lmgpu.costmodel.speedups",
    "d2lmgpu.costmodel.gpus",
    "d2lmgpu.torch.memory",
    "d2lmgpu.memory.fit",
    "d2lmgpu.memory.cards",
    "d2lmgpu.memory.refusal",
    "d2lmgpu.memory.snapshot",
    "d2lmgpu.torch.gpt",
    "d2lmgpu.torch.collective_counts",
    "d2lmgpu.torch.parity",
    "d2lmgpu.torch.streams",
    "d2lmgpu.torch.traces",
    "d2lmgpu.process.checkpoints",
    "d2lmgpu.watch.explain",
]
# What these modules have for the package itself.
HELPERS = {
    "d2lmgpu.collectives.schedules.algorithm",
    "d2lmgpu.collectives.schedules.check_devices",
    "d2lmgpu.costmodel.measure.real_devices",
    "d2lmgpu.costmodel.measure.slowest",
    "d2lmgpu.costmodel.measure.summary",
    "d2lmgpu.memory.cards.on_card",
    "d2lmgpu.memory.cards.on_total",
}
# What is shown of rooms whose other names are for the package itself.
MORE = {
    "d2lmgpu.collectives.rounds.Send",
    "d2lmgpu.data.loader.DataIter",
    "d2lmgpu.machine.profiles.Profile",
    "d2lmgpu.watch.check.run.check",
    "d2lmgpu.watch.check.run.Verdict",
}

TELL = """
import importlib, inspect, json, sys
from dataclasses import is_dataclass

def told(value):
    signature = inspect.signature(value)
    return {
        "doc": inspect.getdoc(value) or "",
        "parameters": [name for name in signature.parameters if name not in ("self", "cls")],
        "returns": signature.return_annotation not in (None, inspect.Signature.empty),
        "dataclass": is_dataclass(value),
    }

def all_told(value, members=None):
    if isinstance(value, type) and issubclass(value, Exception):
        return {"": {"error": True}}
    found = {"": told(value)}
    for name, part in vars(value).items() if members is not None else ():
        part = getattr(part, "__func__", part)  # of a class method
        shown = name in members.split() if members.strip() else name[0] != "_" and part.__doc__
        if shown and inspect.isfunction(part):
            found["." + name] = told(part)
    return found

def name_of(value):
    return f"{value.__module__}.{value.__qualname__}"

entries, modules = json.loads(sys.argv[1])
public, tell = {}, {}
for module in map(importlib.import_module, modules):
    names = getattr(module, "__all__", None)
    for name in names or [n for n in vars(module) if n[0] != "_"]:
        value = getattr(module, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            if names or value.__module__ == module.__name__:
                public[name_of(value)] = f"{module.__name__}.{name}"
                tell[name_of(value)] = all_told(value)
on_page = {}
for entry, members in entries:
    module, _, name = entry.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    on_page[name_of(value)] = entry
    tell[name_of(value)] = all_told(value, members)
print(json.dumps([public, on_page, tell]))
"""


def ask(entries, modules):
    """``(public, on the page, told)`` of entries and modules, each by where it is defined."""
    return json.loads(in_own_process(TELL, json.dumps([entries, modules])))


def sections(doc):
    """{title of a section: its text}, of a docstring in NumPy's style."""
    _, *parts = HEADER.split(doc)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def names(section):
    """The names that a section has an entry for, in their order, and the types of an error."""
    entries = [line for line in section.splitlines() if line and line[0] != " "]
    return [name.strip("* ") for line in entries for name in line.split(" :")[0].split(",")]


def faults(entry):
    """What is wrong with a docstring."""
    if entry.get("error"):
        return []
    parts, wrong = sections(entry["doc"]), []
    section = "Attributes" if entry["dataclass"] and "Parameters" not in parts else "Parameters"
    documented = names(parts.get(section, ""))
    if documented != entry["parameters"]:
        wrong.append(f"documents {documented}, takes {entry['parameters']}")
    if entry["returns"] and "Returns" not in parts:
        wrong.append("does not say what it returns")
    return wrong


@pytest.fixture(scope="module")
def asked():
    return ask(ENTRIES, ["d2lmgpu.torch", *MODULES])


def test_the_page_has_every_public_name_once_and_no_other(asked):
    public, on_page, entries = asked
    assert TEXT.count("\n.. auto") == len(ENTRIES) == len(on_page) > 100
    more = {name for name in on_page if entries[name][""].get("error")} | MORE
    assert {public[name] for name in public.keys() - on_page.keys()} == HELPERS
    assert on_page.keys() - public.keys() - more == set()


def test_every_error_that_is_named_is_on_the_page(asked):
    _, on_page, entries = asked
    errors = {name.rpartition(".")[2] for name in on_page if entries[name][""].get("error")}
    raised = {
        error
        for name in on_page
        for part in entries[name].values()
        for error in names(sections(part.get("doc", "")).get("Raises", ""))
    }
    assert len(errors) > 8
    assert {error for error in raised - errors if not hasattr(builtins, error)} == set()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_docstring_has_the_arguments_that_there_are(framework):
    of_torch = framework == "torch"
    modules = [f"d2lmgpu.{framework}", *(MODULES if of_torch else [])]
    _, _, entries = ask(ENTRIES if of_torch else [], modules)
    wrong = {
        name + part: fault
        for name, parts in entries.items()
        for part, about in parts.items()
        if name not in HELPERS and (fault := faults(about))
    }
    assert len(entries) > 30
    assert wrong == {}


def test_a_docstring_that_lacks_something_is_seen():
    doc = (
        "Sum.\n\nParameters\n----------\na, *b : int\n    Two.\nc : str, optional\n"
        "\nReturns\n-------\nint"
    )
    entry = {"doc": doc, "parameters": ["a", "b", "c"], "returns": True, "dataclass": False}
    assert faults(entry) == []
    assert len(faults(entry | {"parameters": ["b", "a", "c"]})) == 1
    assert len(faults(entry | {"doc": doc.partition("\n\nReturns")[0]})) == 1
    assert len(faults(entry | {"doc": "Sum."})) == 2
