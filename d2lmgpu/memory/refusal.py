"""PyTorch's words for "CUDA out of memory": their figures, and what they say is the way out.

The words are those of c10/cuda/CUDACachingAllocator.cpp: older ones in parentheses ("4.00 GiB total
capacity; 3.36 GiB already allocated"), later ones in sentences, with the other processes on the GPU
(pytorch/pytorch#99699) and then the private pools of CUDA graphs (pytorch/pytorch#124673).
"""

import re
from dataclasses import dataclass

from d2lmgpu.memory import need
from d2lmgpu.memory.cards import CONTEXT, GIB

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": GIB}
SIZE = r"([\d.]+) (bytes|KiB|MiB|GiB)"
LARGE = 0.1  # of what is reserved. PyTorch's message says "large"; this line is our own

FIGURES = {  # name -> the words around it, those of newer versions first
    "asked": (rf"Tried to allocate {SIZE}",),
    "total": (rf"total capaci?ty of {SIZE}", rf"{SIZE} total capacity"),
    "free": (rf"of which {SIZE} is free", rf"{SIZE} free"),
    "allocated": (rf"{SIZE} is allocated by PyTorch", rf"{SIZE} already allocated"),
    "unallocated": (rf"{SIZE} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{SIZE} reserved in total by PyTorch",),
    "allowed": (rf"{SIZE} allowed",),
    "own": (rf"this process has {SIZE} memory in use",),
}
OTHERS = re.compile(rf"Process \d+ has {SIZE} memory in use")

TOO_LARGE, LIMIT, PIECES = "too large", "a limit", "fragmentation"
NEIGHBOURS, FULL, OPEN = "other processes", "full", "cannot be told"
ADVICE = {  # verdict -> what to do
    TOO_LARGE: "this one tensor is larger than the card: make it smaller, or in parts",
    LIMIT: "someone set torch.cuda.set_per_process_memory_fraction or per_process_memory_fraction",
    PIECES: "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the script starts; if it "
    "is set, or does not help, take away what comes and goes in changing sizes",
    NEIGHBOURS: "look at nvidia-smi, end what need not run there, or take another GPU",
    FULL: "it does not fit: a smaller batch, recomputation, 16 bits, FSDP, or another card",
    OPEN: "so much is free, and was refused all the same: run it again, and look at nvidia-smi",
}


def _size(number, unit):
    return int(float(number) * UNITS[unit])


def _shown(size):
    return f"{size / GIB:.2f} GiB"


@dataclass(frozen=True)
class Refusal:
    """The figures of a message "CUDA out of memory", in bytes, as precise as it prints them.

    Attributes
    ----------
    asked : int
        What was to be allocated, as the allocator rounded it.
    total, free : int
        Of the card, by the driver.
    allocated : int
        In tensors of this process.
    unallocated : int
        What PyTorch holds beside them: since it returns whole segments before it gives up, this
        lies between tensors.
    elsewhere : int
        The rest of the card: other processes. CUDA's context of this process is in it where the
        message does not say how much the process has.
    allowed : int or None
        What this process may take, where someone set a limit.
    """

    asked: int
    total: int
    free: int
    allocated: int
    unallocated: int
    elsewhere: int
    allowed: int | None = None

    @property
    def verdict(self) -> str:
        """Why it was refused, as far as the figures tell: a key of ``ADVICE``."""
        reserved = self.allocated + self.unallocated
        beyond = self.allowed is not None and reserved + self.asked > self.allowed
        if beyond or (self.allowed is not None and self.asked <= self.free):
            return LIMIT
        if self.asked > self.total:
            return TOO_LARGE
        neighbours = self.elsewhere > CONTEXT[1]
        if self.asked <= self.free:
            return NEIGHBOURS if neighbours else OPEN
        if self.asked <= self.free + self.unallocated and self.unallocated >= LARGE * reserved:
            return PIECES
        if neighbours and self.asked <= self.free + self.elsewhere:
            return NEIGHBOURS
        return FULL

    def __str__(self):
        return (
            f"{self.verdict}: asked for {_shown(self.asked)}, free {_shown(self.free)}; "
            f"tensors {_shown(self.allocated)}, between them {_shown(self.unallocated)}, "
            f"elsewhere {_shown(self.elsewhere)}: {ADVICE[self.verdict]}"
        )


def read(message: str) -> Refusal:
    """The figures of a message.

    Parameters
    ----------
    message : str
        What PyTorch printed, with whatever stands around it; its lines may be wrapped.

    Returns
    -------
    Refusal

    Raises
    ------
    ValueError
        For a text without the figures of such a message.
    """
    need.kind("message", message, str)
    text = " ".join(message.split())
    figures = {}
    for name, patterns in FIGURES.items():
        match = next(filter(None, (re.search(words, text) for words in patterns)), None)
        figures[name] = _size(*match.groups()) if match else None
    asked, total, free, allocated = map(figures.get, ("asked", "total", "free", "allocated"))
    reserved = figures["reserved"]
    if None not in (allocated, figures["unallocated"]):
        reserved = allocated + figures["unallocated"]
    complete = None not in (asked, total, free, allocated, reserved)
    need(complete, "message", message, "PyTorch's whole message on memory that is out")
    listed = sorted(_size(*size) for size in OTHERS.findall(text))
    # in a container the driver does not tell which is this process: the least that holds as much
    own = figures["own"] or next((size for size in listed if size >= reserved), reserved)
    unallocated, elsewhere = max(0, reserved - allocated), max(0, total - free - own)
    return Refusal(asked, total, free, allocated, unallocated, elsewhere, figures["allowed"])
