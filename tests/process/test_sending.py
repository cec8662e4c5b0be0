"""A function on its way: an error in it still names its file, whatever cloudpickle makes of it."""

import pickle
import types

import cloudpickle
import pytest

from d2lmgpu.process.main_module import NO_FILE
from d2lmgpu.process.sending import pickled


@pytest.mark.parametrize("newer", [False, True])
def test_a_function_keeps_its_file(monkeypatch, newer):
    table, given = cloudpickle.Pickler.dispatch_table, {"__name__": "__main__"}
    real = table[types.CodeType]

    def without_file(code):
        make, parts = real(code)
        return make, tuple(NO_FILE if part == code.co_filename else part for part in parts)

    if newer:  # as 3.1.3 does
        monkeypatch.setitem(table, types.CodeType, without_file)
    exec(compile("def train(lr):\n    return 2 * lr", "cell.py", "exec"), given)
    fn, arguments = pickle.loads(pickled(given["train"], {"lr": 3}))
    assert fn(**arguments) == 6 and fn.__code__.co_filename == "cell.py"


class Plain:
    """Without annotations, which Python makes when they are asked for."""


def test_what_is_sent_stays_as_it_was():
    """The lab knows by it that the same function is pressed again."""
    given = {"__name__": "__main__", "Plain": Plain}
    exec("class Cell:\n    pass\ndef train():\n    return Cell(), Plain()", given)
    pickled(given["train"], {})
    assert "__annotations__" not in vars(given["Cell"]) | vars(Plain)
