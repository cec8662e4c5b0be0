"""Checkpoints: all that a training needs to go on after its death, in files that are never half.

    folder/step-00000120-9f86d081884c7d65.safetensors

120 updates were done; the digits begin the SHA-256 of the file's bytes, so that a damaged file is
known by its own name. Tensors lie in it as such, all the rest as JSON in the header: reading one
runs no code. (torch.distributed.checkpoint unpickles its index, which may; so may torch.load with
weights_only=True, before PyTorch 2.6 and 2.10: CVE-2025-32434 and CVE-2026-24747.)
"""

import contextlib
import hashlib
import json
import random
import re
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from d2lmgpu.machine import atomic_write
from d2lmgpu.machine.checks import Need

FORMAT = 1  # of what the header says; one that is newer is refused
KEEP = 2  # checkpoints in a folder
KEY = "d2lmgpu"
NAME = re.compile(r"step-(\d{8,})-([0-9a-f]{16})\.safetensors")


class CheckpointError(RuntimeError):
    """A checkpoint could not be written, or there are some and none can be used."""


need = Need(CheckpointError)


@dataclass(frozen=True)
class Checkpoint:
    """What was saved.

    Attributes
    ----------
    step : int
        Updates that were done.
    net : dict
        The weights, as ``state_dict()`` has them.
    rest : dict
        The other things, by name.
    """

    step: int
    net: dict
    rest: dict


def save(folder, step, net, **rest) -> Path:
    """Write a checkpoint of a network, and keep the one before it.

    When this returns, the file is on the disk whole.

    Parameters
    ----------
    folder : str or Path
    step : int
        Updates that were done.
    net : Module
    **rest : object
        Tensors, numbers, texts, None, and lists, tuples and dicts of them; as a rule the
        optimizer's ``state_dict()``, the sampler's epoch and position, ``random_states()``,
        settings.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CheckpointError
        If the disk is full or anything else keeps it from being written; the checkpoints before are
        untouched.
    """
    need.whole("step", step, 0)
    folder, tensors = Path(folder), {}
    about = {
        "format": FORMAT,
        "framework": "torch",
        "step": step,
        "state": _packed({"net": net.state_dict(), **rest}, "", tensors),
    }
    data = safetensors.torch.save(tensors, {KEY: json.dumps(about)})
    path = folder / f"step-{step:08}-{_digits(data)}.safetensors"
    try:
        for left in folder.glob(".step-*"):  # by one that was killed while it wrote
            left.unlink(missing_ok=True)
        atomic_write.save(path, data)
    except OSError as error:
        raise CheckpointError(
            f"Step {step} was not saved in {folder}: {error.strerror}. "
            f"{_last(folder)} Make room there, and the next one can be."
        ) from error
    for old in [file for file in _files(folder) if _order(file) <= _order(path)][KEEP:]:
        old.unlink(missing_ok=True)
    return path


def newest(folder, net) -> Checkpoint | None:
    """The newest checkpoint of a network that is whole.

    One that is damaged, of another model, framework or newer version is refused, by a warning with
    its name and the reason, and the one before it is used.

    Parameters
    ----------
    folder : str or Path
    net : Module
        Whose weights they must fit; it is not changed.

    Returns
    -------
    Checkpoint or None
        None where there is none yet.

    Raises
    ------
    CheckpointError
        If none is left: to begin anew would throw away what was trained.
    """
    refused = []
    for file in _files(Path(folder)):
        try:
            checkpoint = _read(file, net)
        except CheckpointError as error:
            refused.append(f"{file.name} {error}")
        else:
            for reason in refused:
                warnings.warn(f"{reason}; {file.name} is used instead.", stacklevel=2)
            return checkpoint
    if refused:
        raise CheckpointError(
            f"No checkpoint in {folder} can be used: {'; '.join(refused)}. "
            "To begin anew, give another folder."
        )
    return None


def random_states() -> dict:
    """The states of all random number generators of this process, as a checkpoint keeps them.

    Returns
    -------
    dict
        By library: Python, NumPy, PyTorch and CUDA.
    """
    key = np.random.get_state(legacy=False)
    key["state"]["key"] = key["state"]["key"].tolist()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"python": random.getstate(), "numpy": key, "torch": torch.get_rng_state(), "cuda": cuda}


def set_random_states(states) -> None:
    """Go on with the random numbers after those of ``states``.

    Parameters
    ----------
    states : dict
        As ``random_states`` gives them.
    """
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    torch.cuda.set_rng_state_all(states["cuda"])


def _read(file, net):
    """The checkpoint in ``file``. Raises CheckpointError: what is wrong, to follow its name."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot be read ({error.strerror})") from error
    if _digits(data) != NAME.fullmatch(file.name)[2]:
        raise CheckpointError("is damaged: its bytes are not those that were written")
    try:
        tensors = safetensors.torch.load(data)
        (size,) = struct.unpack_from("<Q", data)  # of the header
        about = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][KEY])
    except (safetensors.SafetensorError, KeyError) as error:
        raise CheckpointError("was not written by this package") from error
    if about["format"] > FORMAT:
        raise CheckpointError(
            f"is of a newer version (format {about['format']}, here it is {FORMAT})"
        )
    if about["framework"] != "torch":
        raise CheckpointError(f"is of another framework, {about['framework']}")
    state = _unpacked(about["state"], tensors)
    if differing := _differing(state["net"], net.state_dict()):
        raise CheckpointError(f"is of another model: {differing}")
    return Checkpoint(about["step"], state.pop("net"), state)


def _differing(theirs, ours):
    """The first thing in which two state dicts are not of the same model; None if they are."""

    def form(state, name):
        if name not in state:
            return "not there"
        return f"{tuple(state[name].shape)} of {str(state[name].dtype).removeprefix('torch.')}"

    for name in [*theirs, *ours]:
        if (their_form := form(theirs, name)) != (our_form := form(ours, name)):
            return f"{name} is {their_form}, here it is {our_form}"
    return None


def _packed(value, name, tensors):
    """``value`` as JSON; its tensors are put into ``tensors``, and their names in their places."""
    if isinstance(value, torch.Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()  # some share their memory
        return {"tensor": name}
    if isinstance(value, dict):
        pairs = [[k, _packed(v, f"{name}/{k}", tensors)] for k, v in value.items()]
        return {"dict": pairs}  # as pairs: JSON would make texts of an optimizer's numbers
    if isinstance(value, (list, tuple)):
        parts = [_packed(v, f"{name}/{i}", tensors) for i, v in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    plain = value is None or isinstance(value, (bool, int, float, str))
    need(plain, name.lstrip("/"), value, "tensors, numbers, texts, None, lists, tuples and dicts")
    return value


def _unpacked(value, tensors):
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {k: _unpacked(v, tensors) for k, v in content}
    parts = [_unpacked(v, tensors) for v in content]
    return tuple(parts) if kind == "tuple" else parts


def _digits(data):
    return hashlib.sha256(data).hexdigest()[:16]


def _order(file):
    """Later ones are greater: by their step, and of the same step by when they were written."""
    with contextlib.suppress(FileNotFoundError):  # a newer one's writer has removed it
        return int(NAME.fullmatch(file.name)[1]), file.stat().st_mtime_ns
    return -1, 0


def _files(folder):
    """The checkpoints in ``folder``, newest first."""
    there = [file for file in folder.glob("step-*") if NAME.fullmatch(file.name)]
    return sorted(there, key=_order, reverse=True)


def _last(folder):
    there = _files(folder)
    return f"The last one stands: {there[0].name}." if there else "There is none before it."
