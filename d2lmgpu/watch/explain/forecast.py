"""What the second device should give: the cost model, calibrated on this machine."""

import json
from dataclasses import asdict

from d2lmgpu.costmodel.measure import Calibration, calibrate
from d2lmgpu.costmodel.model import Work, step
from d2lmgpu.machine.atomic_write import save
from d2lmgpu.machine.cache import cache
from d2lmgpu.machine.hardware import num_cores
from d2lmgpu.process.settings import version_of
from d2lmgpu.process.step_parts import LOADING
from d2lmgpu.watch.explain.summary import ISSUE


def modelled_speedup(single, run) -> float | None:
    """Modelled speedup from ``single`` to ``run``, both Summaries; None where rows are not seen.

    Loading and computing are those measured with one process, gradients those of the net, and each
    operation is issued on every device; one process for all loads for all. So a fault that the
    model does not know (threads, a straggler, needless messages) is what remains between this and
    the measured speedup.
    """
    if single is None or not single.rows or not run.rows or single.k != 1:
        return None
    loading, all_of_it = single.part((LOADING,))[0], single.seconds
    work = Work(
        one_process=run.in_threads,
        gradient_bytes=float(run.ranks[0]["gradient_bytes"]),
        seconds_per_example=(all_of_it - loading) / single.rows,
        load_seconds=loading / single.rows,
        issue_seconds=min(ISSUE * single.ranks[0]["operations"], all_of_it - loading),
    )
    machine, rows = _calibration(single.ranks[0]["framework"]).machine, run.rows_like(single)
    seconds = {
        k: step(work, machine, k, max(k, round(n))).seconds
        for k, n in ((1, single.rows), (run.k, rows))
    }
    return (rows / seconds[run.k]) / (single.rows / seconds[1])


def _calibration(framework):
    """This machine's, measured once for a version of the framework and a number of cores."""
    file = cache() / f"calibrated-{framework}-{version_of(framework)}-{num_cores()}.json"
    try:
        return Calibration(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # none yet, or another version's
        measured = calibrate(framework, "processes" if framework == "torch" else "threads")
        save(file, json.dumps(asdict(measured)).encode())
        return measured
