"""Pages for maintainers name files and functions: each of them is there.

LIFE_OF_A_RUN.md has runs step by step, CONTRIBUTING.md the words of the code with their owners.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tracked import tracked

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "LIFE_OF_A_RUN.md").read_text()
HEADED = re.compile(r"^## (.+?)\n(.+?)(?=^## |\Z)", re.M | re.S)
RUNS = dict(HEADED.findall(PAGE))
LINK = re.compile(r"\[`([^`]+)`\]\(([^)]+)\): ((?:`[^`]+`(?:, )?)+)")
CLASS = re.compile(r"^class (\w+)[^{\n]*\{\n(.*?)^\}", re.M | re.S)
METHOD = re.compile(r"^  (?:static |async |get )*(#?\w+)\(", re.M)


def steps(run):
    """[number, process, where, what, handed on] of each step of a run."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in RUNS[run].splitlines()]
    return [row for row in rows if len(row) == 5 and row[0].isdigit()]


@cache
def defined(path):
    """The names that a file of Python or JavaScript defines, methods as ``Class.method``."""
    if path.suffix == ".js":
        classes = CLASS.findall(path.read_text())
        return {f"{name}.{method}" for name, body in classes for method in METHOD.findall(body)}
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
            methods = node.body if isinstance(node, ast.ClassDef) else []
            names |= {f"{node.name}.{m.name}" for m in methods if isinstance(m, ast.FunctionDef)}
    return names


def missing(where):
    """What a cell names that is not there: ``file`` or ``file: name``."""
    links = LINK.findall(where)
    left = LINK.sub("", where).strip("; ")
    faults = [f"{left}: no link to a file with its functions"] if left or not links else []
    for text, file, functions in links:
        path = ROOT / file
        if not path.is_file() or not file.endswith(text):
            faults.append(file)
            continue
        names = re.findall("`([^`]+)`", functions)
        faults += [f"{file}: {name}" for name in names if name not in defined(path)]
    return faults


@pytest.mark.parametrize("run", RUNS)
def test_every_step_names_a_file_and_a_function_of_it(run):
    rows = steps(run)
    assert [row[0] for row in rows] == [str(number + 1) for number in range(len(rows))] != []
    assert [name for row in rows for name in missing(row[2])] == []
    assert all(cell for row in rows for cell in row)


def test_every_word_of_the_code_has_an_owner():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("\n## Words of the code\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[1] and not row[1].startswith("-")][1:]
    words = [word for row in rows for word in row[0].split(", ")]
    assert len(words) == len(set(words)) > 40
    assert [name for row in rows for name in missing(row[2])] == []


def test_what_the_sentences_name_is_there():
    code = [path for path in tracked("d2lmgpu") if path.suffix in (".py", ".js")]
    everything = set().union(*map(defined, code))
    methods = set(re.findall(r"`([A-Z]\w+\.#?\w+)`", PAGE))
    assert len(methods) > 20 and methods <= everything
    files = set(re.findall(r"`((?:d2lmgpu|tests)/[\w/]+\.\w+)`", PAGE))
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_a_wrong_name_is_seen():
    lab = "[`lab.js`](d2lmgpu/lab/web/lab.js)"
    model = "[`model.py`](d2lmgpu/lab/model.py)"
    assert missing(f"{lab}: `Lab.#mark`; {model}: `LabModel.run`, `BUSY`") == []
    assert missing(f"{lab}: `Lab.mark`") == ["d2lmgpu/lab/web/lab.js: Lab.mark"]
    assert missing(f"{model}: `LabModel.ran`") == ["d2lmgpu/lab/model.py: LabModel.ran"]
    assert missing("[`a.py`](d2lmgpu/a.py): `run`") == ["d2lmgpu/a.py"]
    assert missing(f"{model} and words") != [] != missing("")
