"""The batches of all loaders: epochs cut short, recorded at k ranks, replayed at one.

A loader's epoch ends after ``EPOCH`` batches, so that a few seconds see several epochs and what
comes after each. In a replay a loader gives the concatenated batches of all ranks. Rows are read in
the process that trains: workers would take longer to start than the few batches.
"""

import io
import os
from functools import wraps

EPOCH = 12  # batches; 2, 3, 4 or 6 micro-batches an update fit
MOST_BYTES = 64 << 20


class Batches:
    def __init__(self, watch, facts, replay):
        self.watch = watch
        self.torch = watch.torch
        self.facts = facts
        self.recorded = {}
        self.counts = {}
        self.bytes = 0
        self.share, self.replay = None, bool(replay)
        self.with_workers = {}  # loaders, by id, that asked for some: kept, so that it stays theirs
        self.batches = self._read(replay) if replay and replay["loaders"] else {}
        self._watch_loaders()

    def _read(self, replay):
        """{where and number: batches of all ranks}."""
        files = [f"{replay['folder']}/kept-batches-{rank}" for rank in range(replay["ranks"])]
        there = all(os.path.exists(file) for file in files)  # else: no loader, or too large
        ranks = [self.torch.load(file, weights_only=True) for file in files] if there else [{}]
        common = set(ranks[0]).intersection(*ranks)
        return {key: [batches[key] for batches in ranks] for key in common}

    def _watch_loaders(self):
        data = self.torch.utils.data
        base = data.dataloader._BaseDataLoaderIter
        make, following, again = base.__init__, base.__next__, base._reset

        @wraps(make)
        def made(iterator, loader, *args, **kwargs):
            self._begin(iterator, loader)
            make(iterator, loader, *args, **kwargs)
            iterator._reads = "worker" if id(loader) in self.with_workers else "own"

        iterator_of = data.DataLoader._get_iterator

        @wraps(iterator_of)
        def without_workers(loader):
            own = loader.worker_init_fn or isinstance(loader.dataset, data.IterableDataset)
            if not own:  # its workers ask which of them they are
                if loader.num_workers:
                    self.with_workers[id(loader)] = loader
                loader.num_workers = loader.timeout = 0
            return iterator_of(loader)

        data.DataLoader._get_iterator = without_workers

        @wraps(again)
        def began_again(iterator, loader, *args, **kwargs):  # workers that are kept
            self._begin(iterator, loader)
            return again(iterator, loader, *args, **kwargs)

        @wraps(following)
        def next_batch(iterator):
            if iterator._checked >= EPOCH and self.watch.options["short"]:
                raise StopIteration
            batch = self._converted(following(iterator))
            iterator._checked += 1
            for function in self.facts.on_batch:
                function(iterator._loader)
            key = self.watch.lines.where() or ""
            number = self.counts[key] = self.counts.get(key, -1) + 1
            return self._exchanged(key, number, batch)

        base.__init__ = made
        base.__next__ = next_batch
        base._reset = began_again
        single = data.dataloader._SingleProcessDataLoaderIter
        read = single._next_data

        @wraps(read)
        def read_here(iterator):
            self.facts.reading = iterator._reads
            try:
                return read(iterator)
            finally:
                self.facts.reading = None

        single._next_data = read_here

    def _begin(self, iterator, loader):
        """An epoch of a loader begins."""
        sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
        sampled = id(sampler) in self.facts.samplers
        self.facts.begin(loader.dataset, _length(loader), sampled)
        iterator._checked, iterator._loader = 0, loader

    def _converted(self, value):
        """Floating-point data in the default type: NumPy's float32 in a run in float64."""
        if isinstance(value, self.torch.Tensor):
            double = self.watch.options["double"] and value.dtype == self.torch.float32
            return value.double() if double else value
        if isinstance(value, dict):
            return {key: self._converted(part) for key, part in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self._converted(part) for part in value)
        return value

    def _exchanged(self, key, number, batch):
        """The batch to go on with: recorded, or replaced by that of all ranks."""
        if not self.replay:
            size = sum(t.numel() * t.element_size() for t in _tensors(batch, self.torch))
            self.bytes += size
            if self.bytes <= MOST_BYTES:
                self.recorded[f"{key} {number}"] = batch
            return batch
        parts = self.batches.get(f"{key} {number}")
        if parts is None:
            return batch
        joined = _joined(parts, self.torch)
        sizes = [len(next(_tensors(part, self.torch), ())) for part in (batch, joined)]
        self.share = self.share or sizes[0] / max(sizes[1], 1)
        return joined

    def report(self) -> dict[str, float]:
        if self.recorded and self.bytes <= MOST_BYTES:
            data = io.BytesIO()
            self.torch.save(dict(self.recorded), data)
            self.watch.keep("batches", data.getvalue())
        return {"share": self.share or 1.0}


def _length(loader):
    """Batches of an epoch that is not cut; None where the loader cannot tell."""
    try:
        return len(loader)
    except TypeError:
        return None


def _tensors(value, torch):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part, torch)


def _joined(parts, torch):
    """The ranks' batches as one."""
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(parts) if first.dim() else first
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts], torch) for key in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(list(column), torch) for column in zip(*parts))
    return first
