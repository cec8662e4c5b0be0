"""The process in which an answer is checked: python -m d2lmgpu.course.exercises.worker"""

import pickle
import sys
import traceback
from pathlib import Path

import numpy as np

from d2lmgpu.course.exercises.registry import Wrong, find
from d2lmgpu.process.events import report
from d2lmgpu.process.main_module import received
from d2lmgpu.process.settings import take_on

FOLDER = Path(__file__).parent
MEMORY = 4 << 30  # bytes of address space that an answer may use beside what is there


def main() -> None:
    job = pickle.loads(sys.stdin.buffer.read())
    take_on(job)
    answer, _ = received(job["call"])
    limit_memory(MEMORY)
    for check in find(job["name"]).checks:
        try:
            text = ""
            for seed in job["seeds"]:
                text = check(answer, np.random.default_rng(seed))
        except Wrong as wrong:
            return say(False, wrong.text, wrong.reason)
        except MemoryError:
            return say(False, f"It asked for more than {MEMORY >> 30} GB of memory.", "memory")
        except SystemExit:
            return say(False, "It ended Python (exit or sys.exit): return instead.", "ended")
        except KeyboardInterrupt:
            return say(False, "It was interrupted.", "ended")
        except BaseException as error:
            frames = error.__traceback__
            while frames and FOLDER in Path(frames.tb_frame.f_code.co_filename).parents:
                frames = frames.tb_next  # from the reader's own code on
            traceback.print_exception(type(error), error, frames)
            return say(False, f"It raised {type(error).__name__}: {error}", "raised")
        say(True, text)
    report("done")


def limit_memory(size) -> None:
    """Let this process use ``size`` bytes of addresses more than it does (on Linux)."""
    if sys.platform == "linux":
        import resource  # which Windows lacks

        with open("/proc/self/statm", encoding="utf-8") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def say(right, text, reason="") -> None:
    """Tell the notebook of one check."""
    report("verdict", right=right, text=text, reason=reason)


if __name__ == "__main__":
    main()
