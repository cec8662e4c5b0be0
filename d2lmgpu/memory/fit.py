"""What a training step takes of a GPU's memory, as it was found."""

from dataclasses import dataclass

from d2lmgpu.memory.allocator import least, replay
from d2lmgpu.memory.cards import OnCard, on_card
from d2lmgpu.memory.timeline import Timeline


@dataclass(frozen=True)
class Fit:
    """What ``fits`` found. All sizes are bytes; none is measured.

    Attributes
    ----------
    peak : int
        Of all tensors together.
    parts : dict of str to int
        What the peak is made of: each of ``timeline.PARTS``.
    allocated : int
        As ``torch.cuda.max_memory_allocated()`` counts, in whole blocks.
    reserved : int
        As ``torch.cuda.max_memory_reserved()``: what the allocator holds at most.
    least : int
        With less from the driver the allocator cannot serve these steps.
    looked : int
        How often a step looked at a number, which was answered by True or 1.
    late : int
        So much more may be held where the GPU is behind the host: by the first FSDP.
    """

    peak: int
    parts: dict[str, int]
    allocated: int
    reserved: int
    least: int
    looked: int
    late: int = 0

    @classmethod
    def of(cls, timeline: Timeline, looked: int, late: int = 0) -> "Fit":
        """What the steps of a timeline take.

        Parameters
        ----------
        timeline : Timeline
        looked : int
            How often they looked at a number.
        late : int
            Bytes that they may hold for longer than they need them.

        Returns
        -------
        Fit
        """
        moment, allocator = timeline.peak(), replay(timeline.events)
        return cls(
            timeline.totals()[moment],
            timeline.parts(moment),
            allocator.most_allocated,
            allocator.most_reserved,
            least(timeline.events, allocator),
            looked,
            late,
        )

    @property
    def most(self) -> int:
        """What the allocator may hold where the GPU is behind the host."""
        return self.reserved + self.late

    def on(self, card: str) -> OnCard:
        """Whether these steps fit on a card.

        Parameters
        ----------
        card : str
            A name in ``d2lmgpu.memory.cards.CARDS``.

        Returns
        -------
        OnCard

        Raises
        ------
        ValueError
            For another name.
        """
        return on_card(self.least, self.most, card)

    def __str__(self):
        parts = ", ".join(f"{part} {size / 1e6:,.0f}" for part, size in self.parts.items() if size)
        text = (
            f"peak {self.peak / 1e6:,.0f} MB ({parts}); allocated {self.allocated / 1e6:,.0f}, "
            f"reserved {self.reserved / 1e6:,.0f}, of it needed {self.least / 1e6:,.0f}, all "
            "without CUDA's context and the workspaces of its libraries"
        )
        if self.looked:
            text += f"; {self.looked} looks at numbers were answered by True or 1"
        if self.late:
            text += (
                f"; up to {self.late / 1e6:,.0f} MB more where the GPU is behind the host, as the "
                "first FSDP lets them go when it is done"
            )
        return text
