"""What a reader's ``train`` may do, in the ways that a lab has to live with."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from d2lmgpu.data.loader import DataIter
from d2lmgpu.machine import others
from d2lmgpu.machine.devices import first
from d2lmgpu.process.events import report


def finishes(num_gpus, batch_size, lr):
    for x in range(3):
        report("point", x=x)


def tells_its_environment(num_gpus, batch_size, lr):
    report("point", environ=dict(os.environ), folder=os.getcwd())


def loads_little_data(num_gpus, batch_size, lr):
    print("the last words")
    X = np.zeros((512, 1))
    return DataIter(X, X, batch_size, shuffle=True, convert=np.asarray)


def takes_devices(num_gpus, batch_size, lr):
    first(num_gpus, gpus=0)


def returns_a_run(num_gpus, batch_size, lr):
    knows_nothing_of_others()
    return SimpleNamespace(num_samples=100, accuracies=[0.5, 0.75], seconds=[2.0, 1.0])


def knows_nothing_of_others():
    """In a worker, which ends after it: as on a machine that does not tell who else works."""
    others.STAT = Path(os.devnull)


def trains_a_little(num_gpus, batch_size, lr, num_epochs=None, accuracy=0.5):
    for done in (10, 20):
        report("batch", epoch=1, done=done, of=20)
    report("point", points=[(0, 1.0, accuracy)], legend=["test acc"], xlim=[1, num_epochs or 3])
    return SimpleNamespace(num_samples=20, accuracies=[accuracy], seconds=[0.5] * (num_epochs or 3))


def returns_words(num_gpus, batch_size, lr):
    return SimpleNamespace(num_samples="many", accuracies=[], seconds=[])


def writes_a_broken_line(num_gpus, batch_size, lr):
    with open(os.environ["D2LMGPU_EVENTS"], "w") as events:
        events.write("{broken\n3\n")
    finishes(num_gpus, batch_size, lr)


def tells_fast(num_gpus, batch_size, lr):
    for x in range(250):
        report("point", points=[(0, x, 1.0)], legend=["loss"])
        time.sleep(0.002)


def waits(num_gpus, batch_size, lr):
    report("point", pid=os.getpid())
    time.sleep(1000)


def ignores_stop(num_gpus, batch_size, lr):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    waits(num_gpus, batch_size, lr)


def catches_everything(num_gpus, batch_size, lr):
    while True:
        try:
            waits(num_gpus, batch_size, lr)
        except BaseException:
            print("no")


def prints_and_goes_on(num_gpus, batch_size, lr):
    print("so far")
    time.sleep(3600)


def raises(num_gpus, batch_size, lr):
    print("the last words")
    return {}["here"]


def needs_more_memory(num_gpus, batch_size, lr):
    print("the last words")
    return bytearray(2**60)


def killed_by_the_system(num_gpus, batch_size, lr):
    print("the last words")
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(num_gpus, batch_size, lr):
    print("the last words")
    sys.stderr.flush()
    ctypes.string_at(0)


def exits(num_gpus, batch_size, lr):
    print("the last words")
    os._exit(7)


def prints_rubbish(num_gpus, batch_size, lr):
    for _ in range(20):
        os.write(1, bytes(range(256)) * 1000)
    print("\nthe last words")


def prints_one_long_line(num_gpus, batch_size, lr):
    os.write(1, b"x" * 1_000_000)


def forks(num_gpus, batch_size, lr):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path("/proc/self/comm").write_text("forked")  # its name; the command is the worker's
            time.sleep(1000)
        os._exit(0)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)


def leaves_files(num_gpus, batch_size, lr):
    report("point", folder=tempfile.mkdtemp())
    time.sleep(1000)


def trains_in_processes(num_gpus, batch_size, lr):
    from d2lmgpu.launch import launch

    launch(rank_waits, num_processes=num_gpus)


def rank_waits():
    rank = int(os.environ["RANK"])
    report("point", pid=os.getpid(), rank=rank)
    time.sleep(1000)


def measures_a_little(network, framework, num_gpus):
    report("measuring", done=0.25, message=f"{network} with {framework}")
    report("batch", epoch=1, done=10, of=20)


def measures_on_and_on(network, framework, num_gpus):
    report("measuring", done=0.5, message="half of it")
    time.sleep(1000)


def cannot_measure(network, framework, num_gpus):
    subprocess.run([sys.executable, "-c", "print('a line'); print('No such thing.')"])
    sys.exit(1)


def prints_and_trains(num_gpus, batch_size, lr):
    print(f"lr {lr}")
    print("done")
    return trains_a_little(num_gpus, batch_size, lr)


def names_what_is_not_there(num_gpus, batch_size, lr):
    np.zeros(3).reshape(undefined_name)  # noqa: F821


def raises_in_a_library(num_gpus, batch_size, lr):
    np.vstack([])


def raises_in_the_package(num_gpus, batch_size, lr):
    DataIter(np.zeros(3), np.zeros(2), batch_size, shuffle=False, convert=None)


def diverges(num_gpus, batch_size, lr):
    for x, loss in ((0.0, 2.3), (1.0, float("nan") if lr > 9 else 2.3 * lr)):
        report("loss", x=x, loss=loss)
    return SimpleNamespace(num_samples=20, accuracies=[0.1], seconds=[0.5])


def takes_steps(num_gpus, batch_size, lr):
    """Thirty steps of a tenth of a second, as it says; every third takes ``lr`` times as long."""
    knows_nothing_of_others()
    for number in range(30):
        total = 0.1 * (lr if number % 3 == 0 else 1)
        steps = {
            "number": 1,
            "samples": 8,
            "seconds": {},
            "total": total,
            "lanes": [],
            "memory": None,
        }
        report("batch", epoch=1, done=8 * (number + 1), of=240, steps=steps)
