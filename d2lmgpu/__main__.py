"""The one command: ``d2lmgpu COMMAND``, or ``python -m d2lmgpu COMMAND``.

What a command needs is imported when it runs.
"""

import argparse
import json
import sys
import traceback
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

MISUSE = 3  # exit code of check and explain where the question could not be put

YOUR_FILES = (
    "Your files stay as they are: the script, what it starts and compiled code run in a view of "
    "them, which is removed; large files are read where they lie. Not held: what is sent over a "
    "network or by a socket in /run; a script that runs as root and wants to get out. Without a "
    "view (Linux 5.12, namespaces) Linux refuses what Python's functions do not divert, but for "
    "modes, times and /dev/shm (Landlock, Linux 5.13); without that nothing runs, unless "
    "--unprotected."
)

OTHERWISE = (
    f"{MISUSE}, nothing was asked: there is no such option, script or device, or d2lmgpu failed."
)
EXIT_CODES_OF_CHECK = (
    "Exit code: 0, it trains as one device does, seen in a run with one on the same rows; 1, it "
    "does not, or a defect was found; 2, that could not be compared, for the reason that is told; "
    f"{OTHERWISE}"
)
EXIT_CODES_OF_EXPLAIN = (
    "Exit code: 0, no cause costs as much as 15 % of a step; 1, one does, and is named; 2, that "
    f"could not be told, or not compared with what --against names; {OTHERWISE}"
)


def doctor(options) -> int:
    if options.links:
        from d2lmgpu.course import links

        return links.main(options.devices, options.hosts)
    from d2lmgpu.course import doctor

    return doctor.main()


def record(options) -> None:
    from d2lmgpu.course import recording

    print("Written to", recording.record_chapter(options.chapter))


def forecast(options) -> None:
    if options.published:
        from d2lmgpu.costmodel import fit

        return fit.main()
    from d2lmgpu.costmodel.forecast import forecast
    from d2lmgpu.course.forecasting import measure
    from d2lmgpu.machine.others import Others
    from d2lmgpu.records import steady

    others = Others()
    devices = measure(options.network, options.framework)[0].devices
    busy = steady.unsteady([], devices, others.cores())
    for k in range(1, devices + 1):
        modelled = forecast(options.network, options.framework, k, 256)
        print(
            f"modelled, {k} of {devices} devices, batch 256:"
            f" {1000 * modelled.step.seconds:.1f} ms a step,"
            f" {modelled.step.communication_share:.1%} of it communication;"
            f" the fits hold within {modelled.fit_error:.0%}"
        )
    if busy:
        print(f"These may be too slow: {busy}. Measure again without them.")


def calibrate(options) -> None:
    from dataclasses import asdict

    from d2lmgpu.costmodel.measure import calibrate

    print(json.dumps(asdict(calibrate(options.framework, options.workers)), indent=1))


def reset(options) -> None:
    from d2lmgpu.course.reset import reset

    copy = reset(options.notebook)
    print(f"{options.notebook} is the published version again: close it and open it anew.")
    if copy:
        print(f"Yours is in {copy.name}.")


def gpu_check(options) -> int:
    if options.unrun:
        from d2lmgpu.course import unrun

        return unrun.main(options.unrun)
    from d2lmgpu.course import gpu_check

    return gpu_check.main({"torch": options.torch, "mxnet": options.mxnet})


def _asked(question, refused):
    """What ``question()`` finds, or of a script that cannot be watched ``refused(why)``."""
    from d2lmgpu.watch import MisuseError, WatchError

    try:
        return question()
    except MisuseError:
        raise
    except WatchError as error:
        print(error, file=sys.stderr)
        return refused(str(error))


def _print_answer(options, content, screen, annotations):
    """Print an answer in the form that is asked for: a dict, words, or words and annotations."""
    if options.json:
        print(json.dumps(content, indent=1))
    else:
        print(*filter(None, [screen, *(annotations if options.github else [])]), sep="\n")


def check(options) -> int:
    from d2lmgpu.watch.check import words
    from d2lmgpu.watch.check.run import OUTCOMES, Verdict, check

    positional = options.script, options.arguments, options.devices
    further = {"unprotected": options.unprotected, "progress": options.progress}
    verdict = _asked(
        lambda: check(*positional, **further), lambda why: Verdict.refused(why, options.devices)
    )
    screen = words.screen(verdict, options.script) if verdict.updates else ""
    _print_answer(options, verdict.as_dict(), screen, verdict.annotations(options.script))
    return OUTCOMES[verdict.outcome]


def explain(options) -> int:
    from d2lmgpu.watch.explain import change
    from d2lmgpu.watch.explain.answer import OUTCOMES, Refused
    from d2lmgpu.watch.explain.page import page
    from d2lmgpu.watch.explain.script import explain_script

    before = change.read(options.against) if options.against else None
    positional = options.script, options.arguments, options.devices
    further = {"unprotected": options.unprotected, "progress": options.progress}
    answer = _asked(lambda: explain_script(*positional, **further), Refused)
    explained = answer.outcome != "not explained"
    content, screen = answer.as_dict(), str(answer) if explained else ""
    if before and explained:
        comparison = change.Against(before, content)
        content, screen = comparison.as_dict(), f"{screen}\n\n{comparison}"
    _print_answer(options, content, screen, answer.annotations(options.script))
    if options.html and explained:
        Path(options.html).write_text(page(answer), encoding="utf-8")
    return OUTCOMES[content["outcome"]]


def fits(options) -> None:
    from d2lmgpu.watch.fits.answer import fits_script

    positional = (
        options.script,
        options.arguments,
        options.gpu,
        options.devices,
        options.unprotected,
    )
    answers = fits_script(*positional, remedies=options.remedies)
    if options.json:
        print(json.dumps([answer.as_dict() for answer in answers], indent=1))
    else:
        print(*answers, sep="\n")


class Parser(argparse.ArgumentParser):
    """One that ends with the exit code ``misuse`` if it is called with wrong options."""

    misuse = 2

    def parse_known_args(self, args=None, namespace=None) -> tuple[Namespace, list[str]]:
        """As ever, but what a command does not know is its own misuse, not the first parser's."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown here: {' '.join(unknown)}. {self.prog} --help says what is known.")
        return options, unknown

    def error(self, message) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self.misuse, f"{self.prog}: error: {message}\n")


def of_a_question(name, subparser) -> None:
    """How the command ``name``, which asks something of a script, answers and fails."""
    subparser.set_defaults(failed=MISUSE)
    subparser.misuse = MISUSE
    form = subparser.add_mutually_exclusive_group()
    text = f"the answer as JSON, as watch/{name}/schema.json in the package d2lmgpu has it"
    form.add_argument("--json", action="store_true", help=text)
    text = "also workflow commands, by which GitHub marks the lines in a pull request"
    form.add_argument("--github", action="store_true", help=text)
    text = "say on stderr which run goes on, and for how long; without either at a terminal only"
    subparser.add_argument("--progress", action=argparse.BooleanOptionalAction, help=text)


def of_a_script(add) -> None:
    """What comes last in a command that runs a reader's own script."""
    text = "run it also where neither a view of your files nor Landlock can be had"
    add("--unprotected", action="store_true", help=text)
    add("script", help="your training script; -- before it if it has options of its own")
    text = "those of your script; {rank} and {world_size} in them are those of each process"
    add("arguments", nargs=argparse.REMAINDER, help=text)


def numbers(text) -> list[int]:
    """``1,2`` as [1, 2]."""
    return [int(number) for number in text.split(",")]


def names(text) -> list[str]:
    """``n1,n2`` as ["n1", "n2"]."""
    return text.split(",")


def cluster_up(options) -> None:
    from d2lmgpu.process.cluster import box, state

    cluster = box.up(options.hosts, options.rate, options.slurm)
    for name, host in cluster["hosts"].items():
        print(f"{name} {host['address']}")
    print(f"Each link lets {cluster['rate']}/s through. By hand:", end=" ")
    print(f"ssh -F {state.folder()}/ssh_config n1")
    if options.slurm:
        print("Slurm's commands (sinfo, sbatch, squeue) work there, on every host.")


def cluster_rate(options) -> None:
    from d2lmgpu.process.cluster import box

    box.rate(options.rate)


def cluster_down(options) -> None:
    from d2lmgpu.process.cluster import box

    box.down()


def parser() -> argparse.ArgumentParser:
    """The commands, each with its function as the option ``run``."""
    top = Parser(prog="d2lmgpu")
    top.set_defaults(failed=1)
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(function, text, commands=commands, above="", epilog=None, asks=False):
        name = function.__name__.removeprefix(above).replace("_", "-")
        subparser = commands.add_parser(name, help=text, description=text, epilog=epilog)
        subparser.set_defaults(run=function)
        if asks:
            of_a_question(name, subparser)
        return subparser.add_argument

    of_the_course(command)
    of_your_script(command)
    of_hosts(commands, command)
    return top


def of_the_course(command) -> None:
    """Add what the course measures and keeps, by ``parser``'s ``command``."""
    add = command(doctor, "what this machine has, and what it lacks for the course")
    text = "instead: what the links between ranks carry, measured, and which of them are off"
    add("--links", action="store_true", help=text)
    add("--devices", type=int, help="with --links: ranks on each host; default: all devices")
    add("--hosts", type=names, help="with --links: hosts that ssh reaches, as n1,n2")
    add = command(record, "run a chapter's train with several settings and write what it did")
    add("chapter", help="the chapter's notebook; one a call: one framework each")
    add = command(forecast, "measure a chapter's training on one device, and model more devices")
    add("network", nargs="?", help="lenet or resnet18")
    add("framework", nargs="?", help="torch or mxnet")
    published = "instead: the cost model beside every published number"
    add("--published", action="store_true", help=published)
    add = command(calibrate, "what the devices of this machine can do, measured in seconds")
    add("framework", help="torch or mxnet")
    workers = "what drives the devices: threads (default), or processes as in DDP"
    add("workers", nargs="?", default="threads", help=workers)
    add = command(reset, "bring the published version of a notebook back; yours is kept beside it")
    add("notebook")
    add = command(gpu_check, "check and record every GPU in both frameworks")
    for name, python in {"torch": sys.executable, "mxnet": ".venv-mxnet-gpu/bin/python"}.items():
        add(f"--{name}", metavar="PYTHON", default=python, help=f"default: {python}")
    text = "instead: list what the pages in a folder of chapters say was not run on a GPU"
    add("--unrun", metavar="CHAPTERS", help=text)


def of_your_script(command) -> None:
    """Add what is asked of a script, by ``parser``'s ``command``."""
    text = "is the training of your script on k devices that on one?"
    add = command(check, text, epilog=f"{EXIT_CODES_OF_CHECK} {YOUR_FILES}", asks=True)
    add("--devices", type=int, default=2, help="how many processes; default: 2")
    of_a_script(add)

    text = "why is the second device slower? runs your script, unchanged, with one and with more"
    add = command(explain, text, epilog=f"{EXIT_CODES_OF_EXPLAIN} {YOUR_FILES}", asks=True)
    add("--devices", type=numbers, default=[1, 2], help="how many, fewest and most; default: 1,2")
    text = "what --json wrote of the script as it was before: also tells what its change gave"
    add("--against", metavar="BEFORE", help=text)
    add("--html", metavar="PAGE", help="write a page with all ranks' timelines and a trace")
    of_a_script(add)

    text = "does your script fit on a GPU that is not here? runs it, unchanged, for two updates"
    add = command(fits, text, epilog=YOUR_FILES)
    add("--gpu", required=True, help='its name, as "RTX 3090"; a wrong one shows all')
    add("--devices", type=numbers, default=[1], help="how many train: 1 (default), or 1,2,4")
    add("--remedies", action="store_true", help="run it again with each of what would take less")
    add("--json", action="store_true", help="the answers as JSON, in bytes")
    of_a_script(add)


def of_hosts(commands, command) -> None:
    """Add ``cluster`` and what stands below it, by ``parser``'s ``command``."""
    text = "hosts in one box: network namespaces with an sshd each, as root on Linux"
    cluster = commands.add_parser("cluster", help=text, description=text)
    below = {"commands": cluster.add_subparsers(metavar="COMMAND", required=True)}
    below["above"] = "cluster_"
    add = command(cluster_up, "start hosts n1, n2, … with slow links between them", **below)
    add("--hosts", type=int, default=2, help="how many; default: 2")
    add("--rate", default="1gbit", help="of each link, each way: 1gbit (default), 100mbit, …")
    text = "make the hosts nodes of a Slurm, with GPUs that are counted but not there"
    add("--slurm", action="store_true", help=text)
    add = command(cluster_rate, "change the rate of the links", **below)
    add("rate", help="1gbit, 100mbit, …")
    command(cluster_down, "remove the hosts and all that is theirs", **below)


def main(arguments=None) -> int:
    """Run one command; returns the exit status (0: all is well).

    What we refuse, a file that is not there and a package that is not installed are one line; a
    mistake of ours has its traceback.
    """
    commands = parser()
    options = commands.parse_args(arguments)
    if options.run is forecast and options.published == bool(options.framework):
        commands.error("forecast takes a network and a framework, or --published alone")
    try:
        return options.run(options) or 0
    except Exception as error:
        ours = type(error).__module__.startswith("d2lmgpu.")
        if ours or isinstance(error, (OSError, ModuleNotFoundError)):
            print(error, file=sys.stderr)
        else:
            traceback.print_exc()
        return options.failed


if __name__ == "__main__":
    sys.exit(main())
