"""What stands for a notebook in which a cell has been run."""

import types


def notebook(code, **names):
    """A module like a kernel's ``__main__`` in which ``code`` has been run."""
    module = types.ModuleType("__main__")
    vars(module).update(names)
    exec(code, vars(module))
    return module
