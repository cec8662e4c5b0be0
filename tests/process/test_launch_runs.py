"""Runs in worker processes: results, output, and what was prepared.

Functions inside the tests travel by value, as those of a notebook do.
"""

import os
import socket
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from d2lmgpu import torch as d2l
from d2lmgpu.launch import LaunchError, launch, prepare


def test_results_come_by_rank_and_again_on_a_second_run(traces):
    def worker(a, b):
        import os

        import torch
        from torch import distributed as dist

        supervisor_group = os.getpgid(os.getppid())
        result = dist.get_rank(), dist.get_world_size(), a + b, torch.get_num_threads()
        return result, supervisor_group

    for _ in range(2):
        results, supervisor_groups = zip(*launch(worker, "x", "y", num_processes=2))
        assert results == ((0, 2, "xy", 1), (1, 2, "xy", 1))
        assert os.getpgrp() not in supervisor_groups  # an interrupt reaches the caller alone
        traces.assert_none(seconds=0.1)


def test_three_workers_sum_uneven_data(traces):
    numbers = list(range(7))

    def worker():
        import torch
        from torch import distributed as dist

        mine = torch.tensor(numbers[dist.get_rank() :: dist.get_world_size()])
        total = mine.sum()
        dist.all_reduce(total)
        return len(mine), int(total)

    assert launch(worker, num_processes=np.int64(3)) == [(3, 21), (2, 21), (2, 21)]


def test_a_group_is_there_for_nobody_before_all_are_connected():
    """Or a worker that is done leaves while another one still accepts its connection."""

    def worker():
        from time import monotonic, sleep

        from torch import distributed as dist
        from torch.distributed import distributed_c10d

        connect = distributed_c10d._new_process_group_helper

        def connect_late(*args, **options):
            group = connect(*args, **options)
            if dist.get_rank() == 1:
                sleep(0.3)
            connected.append(monotonic())
            return group

        connected = []
        distributed_c10d._new_process_group_helper = connect_late
        dist.new_group([0, 1])
        return connected[0], monotonic()

    connected, made = zip(*launch(worker, num_processes=2))
    assert min(made) > max(connected)


def test_workers_listen_on_the_loopback_interface_only(traces, monkeypatch):
    mark = traces.mark
    for interface, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address != "127.0.0.1" for a in addresses):
            monkeypatch.setenv("GLOO_SOCKET_IFNAME", interface)  # a setting of the reader's shell

    def listening():
        from processes import asked, marked
        from torch import distributed as dist

        addresses = []
        dist.barrier()  # all workers are connected
        if dist.get_rank() == 0:
            for process in marked("D2LMGPU_TEST", mark):
                connections = asked(process.net_connections) or ()
                addresses += [c.laddr.ip for c in connections if c.status == "LISTEN"]
        dist.barrier()
        return addresses

    addresses, _ = launch(listening, num_processes=2)
    assert set(addresses) == {"127.0.0.1"}
    traces.assert_none(seconds=0.1)


def test_output_of_rank_0_is_shown_while_the_run_goes_on(traces, monkeypatch, tmp_path):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    seen = str(tmp_path / "seen")

    class Notebook:
        text = ""

        def write(self, text):
            self.text += text
            if "first" in text:
                Path(seen).touch()

        def flush(self):
            pass

    def worker():
        import os

        from torch import distributed as dist

        print(f"first {dist.get_rank()}")
        deadline = time.monotonic() + 20
        while not os.path.exists(seen):
            if time.monotonic() > deadline:
                raise TimeoutError("the line was not shown")
            time.sleep(0.02)
        os.write(1, b"binary \xff\xfe rubbish\n") if dist.get_rank() == 0 else None
        print(f"last {dist.get_rank()}")

    monkeypatch.setattr(sys, "stdout", Notebook())
    launch(worker, num_processes=2)
    assert sys.stdout.text == "first 0\nbinary \ufffd\ufffd rubbish\nlast 0\n"


def test_what_an_optimiser_imports_the_workers_need_not():
    def imported():
        import sys

        return "torch._dynamo" in sys.modules

    assert launch(imported, num_processes=1) == [True]


def test_seed_folder_and_default_dtype_are_those_of_the_call(traces, monkeypatch, tmp_path):
    def worker():
        import os

        import numpy as np
        import torch

        from d2lmgpu.data.loader import DataIter

        X = np.arange(8)
        batch, _ = next(iter(DataIter(X, X, 8, shuffle=True, convert=list)))
        return os.getcwd(), torch.get_default_dtype(), batch, float(torch.rand(1))

    orders, draws, before = [], [], torch.get_default_dtype()
    prepare()
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float64)
    try:
        for n in (1, 1, 2):
            d2l.seed(n)
            [(folder, dtype, order, draw)] = launch(worker, num_processes=1)
            assert (folder, dtype) == (str(tmp_path), torch.float64)
            orders.append(order)
            draws.append(draw)
    finally:
        torch.set_default_dtype(before)
        d2l.seed(0)
    assert orders[0] == orders[1] != orders[2]
    assert draws[0] == draws[1] != draws[2]


def test_more_workers_than_devices_are_refused(traces, monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:1")
    with pytest.raises(LaunchError, match=r"DeviceError: 2 devices were asked for, there are 1"):
        launch(lambda: None, num_processes=2)


@pytest.mark.parametrize("num_processes", [0, -1, True, 1.5, "2"])
def test_number_of_processes_must_be_positive(num_processes):
    with pytest.raises(ValueError, match=rf"^num_processes={num_processes!r}: give a whole"):
        launch(print, num_processes=num_processes)
