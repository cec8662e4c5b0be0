"""Notebooks that want points, or harm, get none and do none; the others get theirs."""

import os
import socket
import tempfile
from pathlib import Path

import pytest
from grading import ACCOUNTS, SOLUTIONS, grades, points, submit
from hostile import ENDED, FORBIDDEN, FORGING, NESTS, STOPPED
from soaking import sample
from test_grading import left_running

# Beside the points; a notebook that stops its keeper costs all of them.
LIMITS = ["--cell-seconds", "5", "--notebook-seconds"]
ONE_HERE = sample(1, ACCOUNTS)  # of the ways to grade: each takes half a minute


@pytest.mark.parametrize("account", ONE_HERE, ids=" ".join)
def test_results_count_only_if_the_command_ended_well(made, tmp_path, account):
    for name, source in ENDED.items():
        submit(tmp_path, name, {}, source)
    submit(tmp_path, "honest", SOLUTIONS)
    table = grades(tmp_path, made, *account)
    assert points(table.pop("honest.ipynb")) == [1, 1, 1]
    assert {name: points(row) for name, row in table.items()} == {
        f"{name}.ipynb": [0, 0, 0] for name in ENDED
    }
    ended = [row["remark"] for name, row in table.items() if name != "results-that-raise.ipynb"]
    assert all(remark.startswith("not graded: ") and len(remark) > 15 for remark in ended)
    assert left_running() == []


def test_what_a_cell_makes_of_the_checker_counts_for_nothing(made, tmp_path):
    """All in one notebook; each by itself is soak's."""
    forging = [FORGING[name] for name in FORGING if name != "points-as-text"]
    submit(tmp_path, "forging", {"combine": SOLUTIONS["combine"]}, *forging)
    (row,) = grades(tmp_path, made).values()
    assert points(row) == [1, 0, 0]


@pytest.mark.soak
@pytest.mark.parametrize("account", ONE_HERE, ids=" ".join)
def test_folders_that_are_nested_deep_cost_nobody_a_point(made, tmp_path, account):
    """Neither who made them nor those who come after it in the same account; and they go."""
    left = Path(tempfile.gettempdir(), f"{tmp_path.name}-nested")
    places = ["$HOME/nested"] if "--own-account" in account else ["$HOME/nested", str(left)]
    names = ["a-nests", "b"]
    for name in names:
        submit(tmp_path, name, SOLUTIONS, NESTS.format(places=places) if name == "a-nests" else "")
    table = grades(tmp_path, made, *account)
    assert {name: points(row) for name, row in table.items()} == {
        f"{name}.ipynb": [1, 1, 1] for name in names
    }
    assert not left.exists()


@pytest.mark.soak
@pytest.mark.parametrize("account", ACCOUNTS, ids=" ".join)
def test_each_forgery_counts_for_nothing(made, tmp_path, account):
    for name, source in FORGING.items():
        submit(tmp_path, name, {}, source)
    table = grades(tmp_path, made, *account)
    assert {name: points(row) for name, row in table.items()} == {
        f"{name}.ipynb": [0, 0, 0] for name in FORGING
    }


@pytest.mark.soak
@pytest.mark.parametrize("account", ACCOUNTS, ids=" ".join)
def test_nobody_stops_the_grading(made, tmp_path, account):
    for name, source in STOPPED.items():
        submit(tmp_path, name, SOLUTIONS, source)
    table = grades(tmp_path, made, *LIMITS, "60", *account)
    assert {row["remark"] for row in table.values()} == {"ended after 60 seconds"}


@pytest.fixture
def open_folder():
    """A folder in which everybody may read, as pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another account to give")
def test_as_root_a_notebook_reads_writes_and_calls_nothing_of_ours(made, open_folder):
    got, folder = open_folder / "got", open_folder / "submissions"
    got.mkdir()
    got.chmod(0o777)  # who gets something can say so
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        values = {
            "found": str(got / "secret"),
            "folder": str(folder),
            "port": server.getsockname()[1],
        }
        for name, source in FORBIDDEN.items():
            submit(folder, name, SOLUTIONS, source.format(**values))
        table = grades(folder, made)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert [path.read_bytes()[:300] for path in got.iterdir()] == []
    assert set(table) == {f"{name}.ipynb" for name in FORBIDDEN}
    killed = table.pop("kills-everybody.ipynb")
    assert points(killed) == [0, 0, 0] and "SIGKILL" in killed["remark"]
    assert all(points(row) == [1, 1, 1] for row in table.values())
