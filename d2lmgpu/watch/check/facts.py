"""Facts of a script beside its gradients: who was called, where, with which states."""

import hashlib
import re
import sys
from contextlib import contextmanager
from functools import wraps

import numpy as np

from d2lmgpu.watch.check.generators import NOISE as OF_OTHERS
from d2lmgpu.watch.check.generators import watch_generators, watch_seeds
from d2lmgpu.watch.collectives import watch_collectives
from d2lmgpu.watch.import_hook import once_imported
from d2lmgpu.watch.run import source_of

NOISE = ("randn", "rand", "randn_like", "rand_like", "normal", "bernoulli")
NOISE_IN_PLACE = ("normal_", "uniform_", "bernoulli_")
DROPOUT = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
EVALUATIONS = 6  # forward passes whose buffers are kept
DRAWS = 200
INDICES = 100_000  # of a part of the data
FSDP1 = "torch.distributed.fsdp.fully_sharded_data_parallel"
HASHED = 65_536  # entries of a batch


class Facts:
    """Counts and lines, filled by hooks; ``report`` gives them as plain values."""

    def __init__(self, watch):
        self.watch, self.torch = watch, watch.torch
        self.lines = {}
        self.names = {}
        self.notes = {}
        self.exchanges = 0
        self.depth = 0
        self.rows = None
        self.batch = None
        self.samplers = {}
        self.sampler = None
        self.parts = {}
        self.reading = None  # which process a loader's rows are read in: "own", or "worker"
        self.evaluations = []
        self.draws = []
        self.owners = {}
        self.shared = False
        self.aliased, self.trained = None, False
        self.net_draws = False  # whether a forward pass that trains does
        self.flat = False  # whether a network has parts of its parameters only, by FSDP1
        self.part, self.own_part = None, None  # Subsets, as batches and epoch below
        self.batches, self.epoch = None, None  # of the loader that began last, and of what trains
        self.on_optimizer = []  # called with (optimizer, the line that made it)
        self.on_forward = []  # called with (module, args, kwargs) of each pass that trains
        self.on_exchange = []  # called with each collective by hand that carries something
        self.on_collective = []  # called with each, whatever it carries
        self.on_backward = []  # called at each backward pass
        self.on_evaluation = []  # called with (args, kwargs) of each pass that evaluates
        self.on_batch = []  # called with the loader of each batch
        watch_collectives(watch, self._exchanging)
        self._watch_modules()
        once_imported(FSDP1, self._watch_fsdp)
        self._watch_samplers()
        self._watch_noise()

    # what others tell

    def new_optimizer(self, optimizer, params) -> None:
        if self.flat or any(type(p).__name__ == "DTensor" for p in params):
            self.watch.end("sharded")  # and another run sees its parts
        where = self.watch.lines.where()
        self.lines.setdefault("optimizer", where)
        for function in self.on_optimizer:
            function(optimizer, where)
        for p in params:
            self.shared |= self.owners.setdefault(id(p), id(optimizer)) != id(optimizer)
        self.owners["kept"] = [*self.owners.get("kept", []), optimizer]  # so that ids stay theirs

    def backward(self, where) -> None:
        if not self.trained:
            self.epoch, self.own_part = self.batches, self.part
        self.trained = True
        self.lines.setdefault("backward", where)
        for function in self.on_backward:
            function()
        if self.sampler:
            self.sampler["trains"] = True

    def step(self, where) -> None:
        self.lines.setdefault("step", where)

    # hooks

    @contextmanager
    def _exchanging(self, collective):
        for function in self.on_collective:
            function(collective)
        if collective.carries:
            self.exchanges += 1
            if collective.by_hand:
                self._by_hand(collective)
        yield

    def _by_hand(self, collective):
        if collective.operator == "allgather" and _one_twice(collective.arguments[0][0]):
            self.aliased = self.aliased or collective.where
        for function in self.on_exchange:
            function(collective)
        # what Accelerate sends of a random generator's state is no gradient
        if self.trained and any(t.is_floating_point() for t in collective.tensors):
            self.lines.setdefault("exchange", collective.where)

    def _watch_fsdp(self, module):
        make = module.FullyShardedDataParallel.__init__

        @wraps(make)
        def made(instance, *args, **kwargs):
            make(instance, *args, **kwargs)
            self.flat = True
            if "optimizer" in self.lines:  # it holds views, which are parts now
                self.watch.end("sharded")

        module.FullyShardedDataParallel.__init__ = made

    def _watch_modules(self):
        nn = self.torch.nn
        ddp = nn.parallel.DistributedDataParallel
        call, make, seed = nn.Module.__call__, ddp.__init__, self.torch.manual_seed
        no_sync = ddp.no_sync

        facts = self

        # Global hooks of PyTorch's are not given the arguments by name. PyTorch's profiler takes
        # the variable ``self`` of this function for the module, so ``self`` must be the module.
        @wraps(call)
        def called(self, *args, **kwargs):
            if facts.depth or facts.torch.compiler.is_compiling():
                return call(self, *args, **kwargs)
            facts.depth = 1
            try:
                facts._enter(self, args, kwargs)
                before = facts.torch.get_rng_state()
                output = call(self, *args, **kwargs)
                if not facts.torch.equal(before, facts.torch.get_rng_state()):
                    facts._drew()
                facts._leave(self)
                return output
            finally:
                facts.depth = 0

        @wraps(make)
        def made(*args, **kwargs):
            self.lines.setdefault("ddp", self.watch.lines.where())
            return make(*args, **kwargs)

        @wraps(no_sync)
        def unsynchronized(*args):
            self.lines.setdefault("no_sync", self.watch.lines.where())
            return no_sync(*args)

        @wraps(seed)
        def seeded(*args, **kwargs):
            self.lines["seed"] = self.watch.lines.where() or self.lines.get("seed")
            return seed(*args, **kwargs)

        nn.Module.__call__ = called
        ddp.__init__ = made
        self.torch.manual_seed = seeded
        ddp.no_sync = unsynchronized

    def _enter(self, module, args, kwargs):
        for name, p in module.named_parameters():
            self.names.setdefault(id(p), name.removeprefix("module."))
        inputs = [*args, *kwargs.values()]
        tensors = [value for value in inputs if isinstance(value, self.torch.Tensor)]
        if (
            self.torch.is_grad_enabled()
            and module.training
            and any(
                isinstance(part, (self.torch.nn.modules.batchnorm._BatchNorm,))
                and not isinstance(part, self.torch.nn.SyncBatchNorm)
                for part in module.modules()
            )
        ):
            self.notes["batch norm"] = True
        if self.torch.is_grad_enabled() and tensors:
            self.lines.setdefault("forward", self.watch.lines.where())
            self.rows, self.batch = len(tensors[0]) if tensors[0].dim() else 1, fingerprint(tensors)
        elif not self.torch.is_grad_enabled() and self.sampler:
            self.sampler["evaluates"] = True
        if self.torch.is_grad_enabled():
            for function in self.on_forward:
                function(module, args, kwargs)
        elif self.trained and not module.training:
            for function in self.on_evaluation:
                function(args, kwargs)

    def _leave(self, module):
        if module.training or self.torch.is_grad_enabled() or not self.trained:
            return
        buffers = [b for b in module.buffers() if b.is_floating_point()]
        if buffers and len(self.evaluations) < EVALUATIONS:
            where = self.watch.lines.where()
            self.evaluations.append(
                {"step": self.watch.steps.number, "where": where, "buffers": fingerprint(buffers)}
            )

    def _watch_samplers(self):
        sampler = self.torch.utils.data.distributed.DistributedSampler
        make, start, set_epoch = sampler.__init__, sampler.__iter__, sampler.set_epoch
        part = self.torch.utils.data.Subset
        cut = part.__init__

        @wraps(cut)
        def was_cut(instance, dataset, indices):
            cut(instance, dataset, indices)
            self.parts[id(instance)] = {"where": self.watch.lines.where(), "kept": instance}

        @wraps(make)
        def made(instance, *args, **kwargs):
            make(instance, *args, **kwargs)
            data = instance.dataset
            more = instance.total_size - len(data)
            own = hash(tuple(map(int, data.indices))) if isinstance(data, part) else None
            self.samplers[id(instance)] = {
                "part": own,
                "rows": self._some_rows(data),
                "cut": self.parts.get(id(data), {}).get("where"),
                "where": self.watch.lines.where(),
                "shuffle": instance.shuffle,
                "repeated": max(more, 0),
                "epochs": [],
                "set": False,
                "trains": False,
                "evaluates": False,
                "kept": instance,
            }

        @wraps(start)
        def started(instance):
            self.sampler = self.samplers.get(id(instance))
            if self.sampler:
                self.sampler["epochs"].append(instance.epoch)
            return start(instance)

        @wraps(set_epoch)
        def epoch_set(instance, epoch):
            if id(instance) in self.samplers:
                self.samplers[id(instance)]["set"] = True
            return set_epoch(instance, epoch)

        sampler.__init__ = made
        sampler.__iter__ = started
        sampler.set_epoch = epoch_set
        part.__init__ = was_cut

    def _some_rows(self, data):
        """A few letters for three rows of the arrays that are held; None of other data.

        Where nobody says that they are its rows, one number for each may be a seed or a weight.
        """
        rows = getattr(data, "tensors", None)
        held, least = (rows, 1) if rows else (getattr(data, "__dict__", {}).values(), 2)
        held = [a for a in held if self._is_array(a) and a.ndim >= least and len(a) == len(data)]
        places = (0, len(data) // 2, len(data) - 1) if len(data) else ()
        some = [self._row(array, i) for array in held for i in places]
        return fingerprint(some) if some else None

    def _is_array(self, value):
        """Whether it is an array of numbers, whose rows can be taken one by one."""
        if isinstance(value, np.ndarray):
            return value.dtype.kind in "biuf"
        return isinstance(value, self.torch.Tensor) and value.layout == self.torch.strided

    def _row(self, array, i):
        """As a tensor: of NumPy's arrays a copy, which may have the bytes in another order."""
        if isinstance(array, np.ndarray):
            return self.torch.from_numpy(np.array(array[i], dtype=np.float64))
        return array[i]

    def begin(self, dataset, batches, sampled) -> None:
        """A loader of so many batches begins, with a DistributedSampler or without one."""
        self.batches = batches
        self.part = None if sampled else self.parts.get(id(dataset))
        if not sampled:
            self.sampler = None

    def _watch_noise(self):
        torch, functional = self.torch, self.torch.nn.functional

        def watched(real, kind):
            @wraps(real)
            def drawn(*args, **kwargs):
                active = kind != "dropout" or _drops(*args, **kwargs)
                if self.trained and active and kwargs.get("generator") is None:
                    self._draw(kind)
                return real(*args, **kwargs)

            return drawn

        for name in NOISE:
            setattr(torch, name, watched(getattr(torch, name), "noise"))
        for name in NOISE_IN_PLACE:
            setattr(torch.Tensor, name, watched(getattr(torch.Tensor, name), "noise"))
        for name in DROPOUT:
            setattr(functional, name, watched(getattr(functional, name), "dropout"))
        watch_generators(OF_OTHERS, self._noise_of_others)
        watch_seeds(self._seed_of_others)

    def _seed_of_others(self, real, kind):
        @wraps(real)
        def seeded(*args, **kwargs):
            self.lines[kind] = self.watch.lines.where() or self.lines.get(kind)
            return real(*args, **kwargs)

        return seeded

    def _noise_of_others(self, real, state):
        """Of NumPy and ``random``. A single number is noise only where it is drawn for a row: in a
        loop it may say what all ranks do next. A worker, which would draw it, has its own seed."""

        @wraps(real)
        def drawn(*args, **kwargs):
            value = real(*args, **kwargs)
            own = self.reading == "own" or (self.reading is None and np.size(value) > 1)
            if self.trained and own:
                self._draw("noise", lambda: state(*args), state.seed)
            return value

        return drawn

    def _drew(self):
        """The net itself has drawn something: by an operator that is none of those above."""
        if self.torch.is_grad_enabled():
            self.net_draws = True
            if not {"noise", "dropout"} & self.notes.keys():
                self.notes["noise"] = True

    def _draw(self, kind, state=None, seed="seed"):
        """``state()``: letters for that of the generator, None without one; PyTorch's else."""
        self.notes[kind] = True
        if len(self.draws) >= DRAWS or not self.watch.steps.number:
            return
        if letters := state() if state else fingerprint([self.torch.get_rng_state()]):
            step, where = self.watch.steps.number, self.watch.lines.where()
            self.draws.append({"state": letters, "where": where, "step": step, "seed": seed})

    def report(self) -> dict:
        samplers = [
            {name: value for name, value in sampler.items() if name != "kept"}
            for sampler in [*self.samplers.values()]
        ]
        return {
            "lines": self.lines,
            "notes": self.notes,
            "samplers": samplers,
            "draws": self.draws,
            "net_draws": self.net_draws,
            "evaluations": self.evaluations,
            "shared": self.shared,
            "aliased": self.aliased,
            "joins": self.mentions("init_process_group|init_device_mesh"),
            "epoch": self.epoch,
            "part": self.own_part and self._part(self.own_part),
        }

    def _part(self, part):
        indices = [int(i) for i in part["kept"].indices[:INDICES]]
        return {"where": part["where"], "indices": indices, "of": len(part["kept"].dataset)}

    def mentions(self, pattern) -> bool:
        """Whether the reader's code has this regular expression in a line, be it reached or not."""
        files = {getattr(module, "__file__", None) for module in [*sys.modules.values()]}
        sources = (file for file in files if file and file.endswith(".py"))
        own = {file for file in sources if self.watch.lines.where([(file, 1)])}
        return any(re.search(pattern, source_of(file)) for file in own | {self.watch.script})


def _drops(input, p=0.5, training=True, inplace=False):
    """Whether dropout, called like that, draws anything."""
    return training and p > 0


def _one_twice(tensors):
    """Whether a list of tensors holds one several times."""
    return len({t.data_ptr() for t in tensors if t.numel()}) < sum(t.numel() > 0 for t in tensors)


def fingerprint(tensors) -> str:
    """A few letters that are the same for the same values."""
    made = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        flat = tensor.detach().reshape(-1)[:HASHED].cpu()
        made.update((flat.double() if flat.is_floating_point() else flat).numpy().tobytes())
    return made.hexdigest()
