"""Threads for devices: also in a forked process, which has none of its parent's."""

import multiprocessing
import threading

from d2lmgpu.machine.threads import DeviceThreads


def test_a_fork_of_a_process_that_has_run_devices_runs_them_too():
    threads, forked = DeviceThreads(lambda: None, lambda: 0), multiprocessing.get_context("fork")
    assert threads.run(abs, [-1, -2]) == [1, 2]
    reader, writer = forked.Pipe(duplex=False)
    child = forked.Process(target=lambda: writer.send(threads.run(abs, [-3, -4])), daemon=True)
    child.start()
    assert reader.poll(60) and reader.recv() == [3, 4]
    child.join()


def test_a_gpu_of_a_mixed_list_does_not_wait_for_a_core(monkeypatch):
    monkeypatch.setattr("d2lmgpu.machine.threads.num_cores", lambda: 1)
    both = threading.Barrier(2, timeout=10)
    meet = DeviceThreads(lambda: None, lambda: 1).run(lambda i: both.wait() >= 0, [0, 1])
    assert meet == [True, True]
