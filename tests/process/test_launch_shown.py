"""What rank 0 prints is shown while it runs: by standard output, or standard error as such."""

import logging
import sys
import warnings

import pytest
from test_launch_notebook import kernel, run_cell  # noqa: F401 (a fixture)

from d2lmgpu.launch import LaunchError, launch

WORDS = "epoch 1 of 2"


def logs():
    logging.basicConfig(level=logging.INFO)
    logging.info(WORDS)


def warns():
    warnings.warn(WORDS)  # noqa: B028


def draws_a_bar():
    for done in range(3):
        print(f"\repoch {done} of 2", end="", file=sys.stderr)


@pytest.mark.parametrize("says", [logs, warns, draws_a_bar])
def test_rank_0_s_standard_error_is_shown_as_such(traces, capfd, says):
    def worker():
        from torch import distributed as dist

        print("rank", dist.get_rank())
        says()

    launch(worker, num_processes=2)
    out, err = capfd.readouterr()
    assert out == "rank 0\n"
    assert err.count(WORDS) == 1  # rank 1 is not shown
    traces.assert_none()


def test_of_a_failure_the_end_is_shown_and_of_a_progress_bar_how_it_was_last(traces, capfd):
    def worker():
        draws_a_bar()
        print("\nlast words", file=sys.stderr)
        raise KeyError("the cause")

    with pytest.raises(LaunchError) as caught:
        launch(worker, num_processes=1)
    assert str(caught.value).endswith("The end of its output:\nepoch 2 of 2\nlast words")
    assert "last words" in capfd.readouterr().err


CELL = """
    from d2lmgpu.launch import launch
    def worker():
        import logging
        logging.basicConfig(level=logging.INFO, format="%(message)s")
        for i in range(3):
            print("out", i)
            logging.info(f"err {i}")
    launch(worker, num_processes=1)
"""


def test_in_a_notebook_it_is_marked_as_standard_error(traces, kernel):  # noqa: F811
    _, client = kernel
    texts = {"stdout": "", "stderr": ""}

    def add(content):
        texts[content["name"]] += content["text"]

    run_cell(client, CELL, on_message=add)
    assert texts == {"stdout": "out 0\nout 1\nout 2\n", "stderr": "err 0\nerr 1\nerr 2\n"}
