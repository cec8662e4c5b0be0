"""The process in which a run happens: imports, waits for one job, trains, says how it went.

python -m d2lmgpu.lab.worker [torch|mxnet] [launch]
"""

import faulthandler
import importlib
import os
import pickle
import signal
import sys
from types import ModuleType

from d2lmgpu import launch
from d2lmgpu.data import files
from d2lmgpu.lab.outcome import failed, outcome_of_return
from d2lmgpu.machine import devices
from d2lmgpu.machine.cache import cache
from d2lmgpu.machine.others import Others
from d2lmgpu.process import lanes
from d2lmgpu.process.errors import error_report
from d2lmgpu.process.events import VARIABLE, report
from d2lmgpu.process.main_module import received
from d2lmgpu.process.settings import take_on, variable_of

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc")


def main(*modules) -> None:
    faulthandler.enable()
    pipe = os.environ[VARIABLE]
    os.nice(5)  # the notebook stays responsive
    # Stop is SIGINT, which this process ignores by inheritance if Jupyter runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        backend = load(modules)
    except Exception as error:
        outcome = failure(error, "The worker could not start:")
        if (name := getattr(error, "name", None)) in modules:
            outcome["message"] += (
                f". {sys.executable} has no {name}: install it there, or name the Python that has "
                f"it in {variable_of(name)}."
            )
        report("outcome", **outcome)
        sys.exit(1)
    job = sys.stdin.buffer.read()
    if not job:
        return  # the notebook closed this spare
    try:
        outcome = train(pickle.loads(job), backend)
    except KeyboardInterrupt:
        outcome = {"status": "stopped"}
    except BaseException as error:
        outcome = failure(error, "train raised")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.pop("RANK", None)  # the run may have changed where and who it is
    os.environ[VARIABLE] = pipe
    report("outcome", **outcome)


def load(modules) -> ModuleType | None:
    """Import what the run will need; say which devices there are."""
    if "launch" in modules:
        launch.prepare()  # imports in parallel
    backends = [name for name in modules if name != "launch"]
    backend = importlib.import_module(f"d2lmgpu.{backends[0]}") if backends else None
    gpus = backend.num_gpus() if backend else 0
    kind, _ = devices.available(gpus)
    report("ready", kind=kind, devices=devices.num_measured(gpus))
    if backend and files.locate(
        files.DATA_SETS["fashion-mnist"], os.environ.get("D2LMGPU_DATA"), cache()
    ):
        backend.load_data_fashion_mnist(1)  # so that the run finds it in memory
    return backend


def train(job, backend) -> dict:
    """Call the function of ``job``; the outcome by what it returns."""
    gpus, num_gpus = backend.num_gpus() if backend else 0, job["num_gpus"]
    for name in [name for name in os.environ if name.startswith("D2LMGPU_") and name != VARIABLE]:
        del os.environ[name]
    os.environ.update(job["environ"])
    kind, count = devices.available(gpus)
    if os.environ.get(devices.VARIABLE, "") in ("", "auto", "cpu", "gpu") and num_gpus > count:
        os.environ[devices.VARIABLE] = f"{kind}:{num_gpus}"  # the lab labels it as simulated
    report("started", sharing=devices.sharing(num_gpus, gpus))
    take_on(job)
    fn, arguments = received(job["call"])
    if backend:
        kind = devices.available(gpus)[0]
        listening = importlib.import_module(f"{backend.__name__}.lanes").listen(kind)
    else:
        listening = lanes.LISTENER.listen(lanes.Steps())
    lanes.watch(fn)
    others = Others()
    with listening:
        returned = fn(**arguments)
    return outcome_of_return(returned) | {"others": others.cores()}


def failure(error, what) -> dict[str, str]:
    """``error`` in words, and its traceback from the reader's own code on."""
    raised = error_report(error, __file__)
    words, message = raised["error"], f"{what} {raised['error']}"
    if isinstance(error, MemoryError) or any(sign in words.lower() for sign in OUT_OF_MEMORY):
        name = type(error).__name__
        message = f"The run ran out of memory ({name}). Try a smaller batch or fewer devices."
    return failed(message, raised["traceback"])


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # threads of the framework may still be busy with a run that was stopped
