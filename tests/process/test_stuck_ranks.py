"""A rank that waits for what is no collective: named where nobody can end the wait, else not."""

import inspect
import time

import pytest
from soaking import sample

from d2lmgpu.launch import LaunchError, launch


def a_lock_taken_twice():
    import threading

    from torch import distributed as dist

    lock = threading.Lock()
    with lock:
        if dist.get_rank() == 1:
            lock.acquire()  # rank 1
    dist.barrier()  # rank 0


def a_queue_that_nobody_fills():
    import queue

    from torch import distributed as dist

    rows = queue.Queue()
    if dist.get_rank() == 1:
        rows.get()  # rank 1
    dist.barrier()  # rank 0


def an_event_that_nobody_sets():
    import threading

    from torch import distributed as dist

    if dist.get_rank() == 1:
        threading.Event().wait()  # rank 1
    dist.barrier()  # rank 0


def a_worker_that_never_answers():
    import threading

    from torch import distributed as dist
    from torch.utils.data import DataLoader

    lock = threading.Lock()

    class Rows:
        def __len__(self):
            return 4

        def __getitem__(self, row):
            with lock:
                return row

    if dist.get_rank() == 1:
        with lock:  # a worker that is forked meanwhile has it taken for ever
            next(iter(DataLoader(Rows(), num_workers=1, multiprocessing_context="fork")))  # rank 1
    dist.barrier()  # rank 0


STUCK = [
    a_worker_that_never_answers,
    a_lock_taken_twice,
    a_queue_that_nobody_fills,
    an_event_that_nobody_sets,
]


@pytest.mark.parametrize("function", sample(1, STUCK))
def test_a_wait_that_nobody_can_end_is_named(traces, function):
    with pytest.raises(LaunchError) as caught:
        launch(function, num_processes=2)
    lines, first = inspect.getsourcelines(function)
    cause, *ranks = str(caught.value).splitlines()
    for rank in (0, 1):
        number = next(n for n, line in enumerate(lines, first) if f"# rank {rank}" in line)
        assert f"(test_stuck_ranks.py:{number}" in cause
        assert f"(test_stuck_ranks.py:{number}" in ranks[rank]
    traces.assert_none()


def test_a_wait_that_ends_is_no_hang(traces):
    """By a timeout, by another thread, by an alarm, by a worker that sleeps; each for 5 s."""

    def late():
        import queue
        import signal
        import threading

        from torch import distributed as dist
        from torch.utils.data import DataLoader

        class Rows:
            def __len__(self):
                return 1

            def __getitem__(self, row):
                time.sleep(5)
                return str(row)

        def by_a_timeout(lock, event):
            lock.acquire(timeout=5)

        def by_a_timer(lock, event):
            threading.Timer(5, event.set).start()
            event.wait()

        def by_an_alarm(lock, event):
            signal.signal(signal.SIGALRM, lambda *_: lock.release())
            signal.alarm(5)
            lock.acquire()

        def by_a_queue(lock, event):
            with pytest.raises(queue.Empty):
                queue.Queue().get(timeout=5)

        def by_a_worker(lock, event):
            next(iter(DataLoader(Rows(), None, num_workers=1, multiprocessing_context="fork")))

        for waits in (by_a_timeout, by_a_timer, by_an_alarm, by_a_queue, by_a_worker):
            if dist.get_rank() == 0:
                lock = threading.Lock()
                lock.acquire()
                waits(lock, threading.Event())
            dist.barrier()
        return dist.get_rank()

    assert launch(late, num_processes=2) == [0, 1]
    traces.assert_none()
