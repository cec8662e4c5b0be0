"""Plans of ``parallelize_module``: entries that match no layer cut nothing, and only warn."""

import re
import warnings
from functools import wraps

from d2lmgpu.watch.import_hook import once_imported

UNMATCHED = re.compile(r"Parallelize plan key '(.*?)' could not be resolved")  # PyTorch's warning


class Plans:
    """``unmatched``: the entries of plans that match no layer; ``where``: the line of the first."""

    def __init__(self, watch):
        self.watch = watch
        self.unmatched = []
        self.where = None
        once_imported("torch.distributed.tensor.parallel", self._watch)

    def _watch(self, module):
        real = module.parallelize_module

        @wraps(real)
        def watched(*args, **kwargs):
            with warnings.catch_warnings(record=True) as all_warnings:
                warnings.simplefilter("always")
                cut = real(*args, **kwargs)
            self._read(all_warnings)
            return cut

        module.parallelize_module = watched

    def _read(self, all_warnings):
        for warning in all_warnings:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
            if match := UNMATCHED.match(str(warning.message)):
                self.unmatched.append(match[1])
                self.where = self.where or self.watch.lines.where()

    def report(self) -> dict:
        return {"plan": {"unmatched": self.unmatched, "where": self.where}}
