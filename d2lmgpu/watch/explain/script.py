"""``explain`` for a script: it is run, unchanged, with few processes and with many."""

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.explain.answer import Answer
from d2lmgpu.watch.explain.pair import LIMITS, OBSERVER, answer, compared
from d2lmgpu.watch.explain.summary import summary
from d2lmgpu.watch.progress import Progress
from d2lmgpu.watch.run import check_devices, check_script, run


def explain_script(
    script, arguments=(), devices=(1, 2), unprotected=False, progress=None
) -> Answer:
    """Run ``script`` with the fewest and the most of ``devices`` processes, and say what is slow.

    ``unprotected``: also where your files cannot be protected from it. ``progress``: whether stderr
    says what is being run (see ``Progress``). Raises WatchError for a script that does not train,
    and MisuseError for one, or for devices, that are not there.
    """
    path = check_script(script)
    few, many = check_devices(min(devices)), check_devices(max(devices))
    further = {"unprotected": unprotected, "progress": Progress(progress, 1 + (few < many))}

    def trained(number):
        return _trained(path, arguments, number, many, further)

    first = trained(few)
    notes, report = [first.note] if first.note else [], first.reports[0]
    single = summary(first)
    if report["spawned"] or few == many:
        if report["spawned"]:
            notes.append(
                "The script starts its own processes, and how many is its own choice: "
                "there is no run with one device beside it."
            )
        run_, single = single, None
    else:  # a script may join a group only where there are several
        single, run_ = compared(lambda k: summary(trained(k)), few, many, single)
        if run_ and not any(rank["distributed"] for rank in run_.ranks):
            # as many trainings as processes, and each is the first
            run_, single = single or run_, None
    return answer(str(script), single, run_, notes, str(path.parent))


def _trained(path, arguments, processes, devices, further):
    options = {"devices": devices}
    watched = run(path, list(arguments), processes, OBSERVER, options, LIMITS, **further)
    if watched.trouble:
        raise WatchError(f"With {processes} process{'es' * (processes > 1)}: {watched.explanation}")
    return watched
