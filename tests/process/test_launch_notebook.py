"""A launch from a cell of a real Jupyter kernel: interrupted, killed, and run again."""

import os
import signal
import textwrap
from pathlib import Path

import pytest
from jupyter_kernel import Kernel
from traces import until

CHAPTER = Path(__file__).parents[2] / "chapters" / "concise"


@pytest.fixture
def kernel(traces):
    with Kernel(CHAPTER) as kernel:
        yield kernel.manager, kernel.client


def run_cell(client, code, on_text=lambda text: None, on_message=lambda content: None):
    """Run a cell; return its reply and what it printed.

    A line may come in pieces. At each of them ``on_text`` is called with all text so far, and
    ``on_message`` with the piece and the name of its stream.
    """
    printed = []

    def output(message):
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])
            on_text("".join(printed))
            on_message(message["content"])

    reply = client.execute_interactive(
        textwrap.dedent(code), timeout=90, output_hook=output, allow_stdin=False
    )
    return reply["content"], "".join(printed)


DEFINE = """
    from d2lmgpu.launch import launch
    import sys
    scale = 10

    def worker(wait):
        import time
        import torch
        from torch import distributed as dist
        total = torch.tensor(scale * (dist.get_rank() + 1))
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print("sum", end=" ", flush=True)
            time.sleep(0.1)  # a line in two pieces, as may happen to any
            print(int(total), flush=True)
        time.sleep(wait)
        return int(total)

    before = set(sys.modules)
"""
CALL = "print(launch(worker, 0, num_processes=2), 'torch' in set(sys.modules) - before)"


def test_function_of_a_notebook_interrupted_and_run_again(traces, kernel):
    manager, client = kernel
    kernel_pid = manager.provisioner.pid

    assert run_cell(client, DEFINE)[0]["status"] == "ok"
    reply, printed = run_cell(client, CALL)
    assert printed == "sum 30\n[30, 30] False\n", reply

    def interrupt(text):
        if text == "sum 30\n":
            manager.interrupt_kernel()

    reply, printed = run_cell(client, "launch(worker, 1000, num_processes=2)", on_text=interrupt)
    assert reply["ename"] == "KeyboardInterrupt" and printed == "sum 30\n"
    traces.assert_none(but=[kernel_pid], seconds=1)

    reply, printed = run_cell(client, CALL)
    assert printed == "sum 30\n[30, 30] False\n", reply


def test_traceback_of_a_cell_shows_its_source(traces, kernel):
    _, client = kernel
    run_cell(client, "from d2lmgpu.launch import launch\ndef worker():\n    1 / 0  # this line")
    reply, _ = run_cell(client, "launch(worker, num_processes=2)")
    assert reply["ename"] == "LaunchError"
    assert "ZeroDivisionError: division by zero" in reply["evalue"]
    assert "1 / 0  # this line" in reply["evalue"]


def test_killed_kernel_leaves_nothing(traces, kernel):
    manager, client = kernel
    run_cell(client, DEFINE)
    client.execute("launch(worker, 1000, num_processes=2)")
    assert until(lambda: len(traces.processes("worker")) == 2, seconds=60)
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    traces.assert_none(but=[manager.provisioner.pid])
