"""The operators make the mistakes that they are there for, and pages notice a sample of them."""

import ast
import tempfile
from pathlib import Path

import children
import mutants
import operators
import pytest
from nbformat import v4
from notebooks import NAMES, ROOT, code_cells, read

from d2lmgpu.process.cluster import state


def changes(operator, source):
    """What one operator makes of a line of code."""
    name = operator.__name__.replace("_", " ")
    return [m.source for m in operators.mutants(source) if m.operator == name]


@pytest.mark.parametrize(
    "operator, source, mutated",
    [
        (operators.sign, "a + b", ["a - b"]),
        (operators.sign, "a -= b", ["a += b"]),
        (operators.sign, "x[-1]", ["x[1]"]),
        (operators.dropped_term, "a + b", ["a", "b"]),
        (operators.dropped_term, "a - b", ["a"]),
        (operators.dropped_term, "a * b", ["a", "b"]),
        (operators.dropped_term, "a += b", ["pass"]),
        (operators.wrong_divisor, "a / n", ["a / (2 * n)"]),
        (operators.wrong_divisor, "a //= n", ["a //= 2 * n"]),
        (operators.no_copy, "p.to(device, copy=True)", ["p.to(device, copy=False)"]),
        (operators.no_copy, "p.copyto(device)", ["p.as_in_ctx(device)"]),
        (operators.no_copy, "p.clone()", ["p"]),
        (operators.no_copy, "copy.deepcopy(net)", ["net"]),
        (operators.no_copy, "data[i][:] = total", ["data[i] = total"]),
        (operators.no_copy, "data[i][:] += total", ["data[i] = data[i] + total"]),
        (operators.no_copy, "for p in ps:\n    p -= g", ["for p in ps:\n    p = p - g"]),
        (operators.no_copy, "for p in ps:\n    n += g", []),
        (operators.skipped_allreduce, "d2l.allreduce(grads)", ["pass"]),
        (operators.skipped_allreduce, "total = allreduce(grads)", []),
        (operators.off_by_one, "range(k)", ["range(k - 1)"]),
        (operators.off_by_one, "x[1:]", ["x[2:]"]),
        (operators.off_by_one, "a < b", ["a <= b"]),
        (operators.off_by_one, "len(y)", ["len(y) - 1"]),
        (operators.off_by_one, "net.train(True)", []),
        (operators.off_by_one, "lr = 0.1", []),
    ],
)
def test_operator(operator, source, mutated):
    assert changes(operator, source) == mutated


@pytest.mark.parametrize("source", ["print(a + 1)", "f'{a + 1}'", "animator.add(a + 1, b)"])
def test_what_is_only_shown_is_left_alone(source):
    assert operators.mutants(source) == []


def test_every_mutant_is_other_code_than_its_cell():
    for name in NAMES:
        cells, made = code_cells(read(ROOT / name)), mutants.all_mutants(name)
        assert len({(number, mutant.source) for number, mutant in made}) == len(made)
        for number, mutant in made:
            assert mutant.source != ast.unparse(ast.parse(cells[number].source))


def test_equivalent_mutants_are_mutants():
    keys = {
        mutants.Outcome(name, mutant, None).key
        for name in NAMES
        for _, mutant in mutants.all_mutants(name)
    }
    assert mutants.equivalent().keys() <= keys


def page(*sources, text):
    """The code cells of a page whose last one is checked."""
    cells = [v4.new_code_cell(source, metadata={"tags": ["define"]}) for source in sources]
    cells[-1].metadata["tags"] = ["nbval-check-output"]
    cells[-1].outputs = [v4.new_output("stream", text=text)]
    return cells


@pytest.mark.parametrize(
    "source, killed_by",
    [
        ("n = 1 + 1", None),
        ("n = 1 - 1", "WrongOutput 2 cells on"),
        ("n = 5", "AssertionError 1 cells on"),
        ("n = 1 / 0", "ZeroDivisionError 0 cells on"),
        ("import os; os._exit(0)", "the end of its process"),
    ],
)
def test_first_failure_kills(source, killed_by):
    cells = page("n = 1 + 1", "assert n < 3", "print(n)", text="2\n")
    assert children.killer(cells, source, {}, [60] * 3) == killed_by


@pytest.mark.parametrize(
    "source, killed_by", [("n = 2", None), ("n = 3", "WrongOutput 1 cells on")]
)
def test_the_value_of_a_last_line_is_compared(source, killed_by):
    cells = page("n = 2", "print('n:')\nn", text="n:\n")
    cells[-1].outputs.append(v4.new_output("execute_result", {"text/plain": "2"}))
    assert children.killer(cells, source, {}, [60] * 2) == killed_by


def test_hang_kills():
    cells = page("pass", "print(1)", text="1\n")
    assert children.killer(cells, "while True: pass", {}, [0, 60]) == children.HANG
    assert children.killer(cells, "import time; time.sleep(1)", {}, [60, 60]) is None


def test_a_cell_hangs_if_it_takes_far_longer_than_it_does():
    first, second = children.limits_of(page("n = 1", "print(n)", text="1\n"), {})
    assert children.LEAST < first < 2 * children.LEAST > second > children.LEAST
    slow, _ = children.limits_of(page("import time; time.sleep(2)", "print(1)", text="1\n"), {})
    assert slow > children.LEAST + 2 * children.TIMES
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        children.limits_of(page("n = 1 / 0", "print(1)", text="1\n"), {})


@pytest.mark.parametrize("source", ["Path(folder.name, 'made').touch()", "folder.cleanup()"])
def test_what_a_mutant_does_in_the_folder_of_its_page_is_undone(source):
    with tempfile.TemporaryDirectory() as name:
        folder = tempfile.TemporaryDirectory(dir=name)
        Path(folder.name, "kept").touch()
        namespace = {"folder": folder, "Path": Path}
        with children.restored(namespace):
            assert children.killer(page("print(1)", text="1"), source, namespace, [60])
        assert [file.name for file in Path(folder.name).iterdir()] == ["kept"]


def test_what_takes_long_is_asked_again_by_the_time_of_the_page(monkeypatch):
    monkeypatch.setattr(children, "LEAST", 0.5)
    cells = page("import time; time.sleep(1)", "print(1)", text="1\n")
    limits = {}
    assert children.verdict_on(cells, "import time; time.sleep(2)", {}, limits) is None
    assert 5 < limits[cells[0].id] < 20 and limits.keys() == {cell.id for cell in cells}
    assert children.verdict_on(cells[1:], "while True: pass", {}, limits) == children.HANG


def test_device_names_do_not_kill():
    cells = page("name = 'cpu:1'", "print(name)", text="cuda:0\n")
    assert children.killer(cells, "name = 'cpu:0'", {}, [60, 60]) is None


def test_pages_notice_a_sample_of_mistakes():
    """Two of many hundred; `make mutants` tries them all."""
    names = [name for name in NAMES if mutants.all_mutants(name)]
    chosen = mutants.sample({name: mutants.all_mutants(name) for name in names}, 2, seed=5)
    fates = {outcome.fate for made in mutants.carry_out(chosen) for outcome in made}
    assert fates and fates <= {"killed", "equivalent"}


@pytest.mark.needs("hosts")
def test_hosts_that_a_mutant_left_are_gone(monkeypatch, tmp_path):
    monkeypatch.setenv(state.VARIABLE, str(tmp_path / "hosts"))
    source = "from d2lmgpu.process.cluster import box; box.up(1); 1 / 0"
    with children.restored({}):
        assert children.killer(page("pass", text=""), source, {}, [60])
        assert state.read()["hosts"]
    assert not state.folder().exists()
