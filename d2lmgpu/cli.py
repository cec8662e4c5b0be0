"""``python -m d2lmgpu COMMAND``."""

import argparse
import sys


def main(arguments=None) -> int:
    """Run one command; returns the exit status (0: all is well)."""
    parser = argparse.ArgumentParser(prog="python -m d2lmgpu")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="what this machine has, and what it lacks for the course")
    record = commands.add_parser("record", help="run a chapter's train and write what it did")
    record.add_argument("chapter", help="the chapter's notebook; one a call: one framework each")
    check = commands.add_parser("gpu-check", help="check and record every GPU in both frameworks")
    for name, python in {"torch": sys.executable, "mxnet": ".venv-mxnet-gpu/bin/python"}.items():
        check.add_argument(f"--{name}", metavar="PYTHON", default=python, help=f"default: {python}")
    chosen = parser.parse_args(arguments)

    if chosen.command == "record":
        from d2lmgpu import records

        try:
            print("Written to", records.record_chapter(chosen.chapter))
        except (records.RecordError, OSError) as error:
            print(error, file=sys.stderr)
            return 1
        return 0

    if chosen.command == "gpu-check":
        from d2lmgpu import gpucheck

        return gpucheck.main({"torch": chosen.torch, "mxnet": chosen.mxnet})

    from d2lmgpu import doctor

    return doctor.main()
