"""A function on its way: an error in it still names its file, whatever cloudpickle makes of it."""

import io
import linecache
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


@pytest.fixture
def cell(tmp_path):
    """What is sent of the sources of a function, whose file ``linecache`` has from ``time`` on."""

    def sent(time, written):
        file, source = tmp_path / "1662700898.py", "def train():\n    return 2\n"
        if written:
            file.write_text(source)
        linecache.cache[name] = (len(source), time, source.splitlines(True), name)
        given = {"__name__": "__main__"}
        exec(compile(source, name, "exec"), given)
        call = pickle.Unpickler(io.BytesIO(pickled(given["train"], {})))
        call.load()
        while call.load():
            pass
        return call.load()

    name = str(tmp_path / "1662700898.py")
    yield sent, name
    linecache.cache.pop(name, None)


@pytest.mark.parametrize(
    "time, written",
    [(1.7e9, False), (None, False), (None, True)],
    ids=["IPython 7, as on Colab", "later ones", "a debugger's file"],
)
def test_the_source_of_a_cell_goes_along_and_stays(cell, time, written):
    sent, name = cell
    kept = sent(time, written)
    linecache.cache.pop(name)
    linecache.cache.update(kept)
    linecache.checkcache(name)  # as a traceback does
    assert linecache.getline(name, 2) == "    return 2\n" and name in kept


def test_what_is_on_the_disk_is_read_there(cell):
    assert cell[0](1.7e9, True) == {}
