"""The ``train`` of another chapter, as the notebook on disk has it when the run starts."""

from hashlib import sha256
from pathlib import Path

from d2lmgpu.costmodel.forecast import training_of
from d2lmgpu.course import chapters
from d2lmgpu.lab.functions import KnownTrain
from d2lmgpu.process import lanes
from d2lmgpu.process.settings import TITLES


class ChapterTrain(KnownTrain):
    """``train(num_gpus, batch_size, lr, num_epochs=None)`` of the notebook ``path``.

    Its cells run in the worker, so both frameworks can be used from one lab. Raises
    FileNotFoundError if there is no such notebook.
    """

    def __init__(self, path):
        self.path = Path(path).resolve()
        self._given = str(path)
        self.__name__ = "train"  # as a function has one
        text, self.training = self.path.read_text("utf-8"), training_of(path)
        self.modules = tuple(f for f in TITLES if f"from d2lmgpu import {f} as d2l" in text)
        if "from d2lmgpu.launch import" in text:
            self.modules += ("launch",)

    def __call__(self, num_gpus, batch_size, lr, num_epochs=None):
        train = chapters.load(self.path)[self.__name__]
        lanes.watch(train)
        return train(num_gpus, batch_size, lr, num_epochs)

    def version(self) -> str:
        """A hash of the notebook."""
        return sha256(self.path.read_bytes()).hexdigest()[:8]

    def source(self) -> tuple[list[str], str]:
        """How a cell gets this: (lines before, expression)."""
        imported = "from d2lmgpu.course.chapter_train import ChapterTrain"
        return [imported], f"ChapterTrain({self._given!r})"
