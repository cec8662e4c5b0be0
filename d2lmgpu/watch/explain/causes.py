"""A cause of a slow step: of which kind it is, and what was seen of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of cause: its ``name`` in answers, and the ``mend``, what to change."""

    name: str
    mend: str


@dataclass(frozen=True)
class Cause:
    """The ``share`` of the step that it costs, its line, and in a sentence what is wrong."""

    kind: Kind
    share: float
    where: str | None
    sentence: str

    @property
    def name(self) -> str:
        """The name of its kind."""
        return self.kind.name

    @property
    def mend(self) -> str:
        """The mend of its kind."""
        return self.kind.mend
