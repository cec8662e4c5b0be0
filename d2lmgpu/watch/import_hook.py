"""Do something once PyTorch has been imported, by whoever imports it first.

What a script sets before it imports PyTorch (threads, affinity, allocators) must still count. So
nothing here imports it.
"""

import importlib
import importlib.abc
import importlib.util
import sys

from d2lmgpu.machine.imports import collector_paused


class _Loader(importlib.abc.Loader):
    """The loader of a module, and what comes after."""

    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def __getattr__(self, name):  # resources, source: as without us
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        with collector_paused():
            self.loader.exec_module(module)
        self.then(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            spec.loader = _Loader(spec.loader, self.then)
        return spec


def once_imported(name, then) -> None:
    """Call ``then(module)`` as soon as the module ``name`` has been imported, before its user."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then))


class _Withheld(importlib.abc.Loader):
    """The loader of a package that has been imported already, and of what is in it."""

    def __init__(self, name, first):
        inside = [each for each in sys.modules if f"{each}.".startswith(f"{name}.")]
        self.modules = {each: sys.modules.pop(each) for each in inside}
        self.name = name
        self.first = first
        self.spec = self.modules[name].__spec__

    def find_spec(self, name, path, target=None):  # it is its own finder
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return self.modules[self.name]

    def exec_module(self, module):
        for name in self.first:
            importlib.import_module(name)
        module.__spec__, module.__loader__ = self.spec, self.spec.loader
        sys.modules.update(self.modules)


def withhold(name, *first) -> None:
    """Take a package that has been imported away: who imports it from now on gets it back.

    That is so for who imports a module in it, too. ``first``: what it imports before.
    """
    if name in sys.modules:
        sys.meta_path.insert(0, _Withheld(name, first))
