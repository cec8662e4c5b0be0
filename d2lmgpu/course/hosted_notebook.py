"""A chapter alone on a hosted notebook service, as Kaggle or Colab: its files and its devices.

Such a service opens one notebook. The first cell of each page that can run there installs this
package, with all chapters and records in it, and calls ``enter``.
"""

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from d2lmgpu.backend import need_torch
from d2lmgpu.machine import files
from d2lmgpu.machine.devices import VARIABLE
from d2lmgpu.machine.hardware import installed_gpus, num_cores

FOLDER = "hands-on-multi-gpu"  # made where the notebook was opened, once


def enter(part: str) -> None:
    """Go to the chapter's folder, ``chapters/part``, in a copy of the course's files.

    Says which devices there are. On a single GPU two share it, simulated, unless D2LMGPU_DEVICES
    says otherwise. Nothing happens where the notebook lies in such a folder already, as in a
    checkout. Raises ImportError if PyTorch is older than it may be.
    """
    if Path.cwd().parts[-2:] == ("chapters", part):
        return
    try:
        need_torch(version("torch"))
    except PackageNotFoundError as error:
        raise ImportError("PyTorch is not installed here: pip install torch") from error
    course = Path(FOLDER).absolute()
    for place in (files.CHAPTERS, files.CLUSTERS, files.RECORDS):
        if not (course / place.name).exists():
            shutil.copytree(place, course / place.name)
    os.chdir(course / "chapters" / part)
    gpus = installed_gpus()
    if len(gpus) == 1:
        os.environ.setdefault(VARIABLE, "gpu:2")
    print(f"The course is in {course}. {devices(gpus, os.environ.get(VARIABLE))}")


def devices(gpus, choice) -> str:
    """What the pages will run on, in words."""
    if choice:
        chosen = f"{VARIABLE}={choice}"
        if len(gpus) == 1 and choice == "gpu:2":
            return f"One GPU, and two devices share it ({chosen}): simulated, no speedup."
        return f"Devices as chosen: {chosen}."
    if gpus:
        return f"{len(gpus)} GPUs, each of them a device."
    return (
        f"No GPU, so each of {num_cores()} CPU cores is a device. For GPUs, choose an accelerator "
        "in the service's settings, which starts the notebook anew."
    )
