"""A notebook's function, called where a script would run, with the file of a job as its argument.

See ``explain.function``, which writes the job.
"""

import pickle
import sys
from pathlib import Path

from d2lmgpu import launch
from d2lmgpu.process import lanes
from d2lmgpu.process.main_module import received
from d2lmgpu.process.settings import take_on


def join() -> int:
    """Join the group of the ranks, once."""
    from torch import distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.get_world_size()


def launched(fn, *args, **_) -> list:
    """What ``launch`` does, in a process that is a rank already."""
    number = join()
    return [fn(*args)] * number


def main(path) -> None:
    job = pickle.loads(Path(path).read_bytes())
    if job["ranks"]:
        launch.launch = launched  # what the function sees under this name
    take_on(job)
    fn, arguments = received(job["call"])
    if job["joins"]:
        join()
    if not job["ranks"]:
        lanes.watch(fn)
    fn(**arguments)


if __name__ == "__main__":
    main(sys.argv[1])
