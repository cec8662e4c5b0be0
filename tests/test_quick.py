"""``make quick`` runs something of every room of tests, or says why it does not."""

import re
from pathlib import Path

from tracked import tracked

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {  # room -> why it has no place in three minutes without a built book
    "book": "its pages are made by `make book`, which takes ten minutes",
    "cluster": "its hosts take root, and its kills want a machine without other work",
    "hosted": "it builds the wheel and installs it: most of a minute for its cheapest file",
    "frameworks": "its libraries are in an environment of their own: `make test-frameworks`",
}


def listed(makefile):
    """The files of each variable QUICK… of a Makefile, below tests/."""
    text = makefile.replace("\\\n", " ")
    return dict(re.findall(r"^(QUICK\w*) := (.+)$", text, re.MULTILINE))


def test_every_room_has_a_file_in_make_quick_or_a_reason():
    lists = listed((ROOT / "Makefile").read_text())
    files = lists["QUICK"].split() + [
        f"backends/{name}" for name in lists["QUICK_BACKENDS"].split()
    ]
    assert len(files) == len(set(files)) > 40
    assert [name for name in files if not (ROOT / "tests" / name).is_file()] == []
    tests = [path.relative_to(ROOT / "tests") for path in tracked("tests")]
    tests = [path for path in tests if path.name.startswith("test_") and path.suffix == ".py"]
    rooms = {path.parts[0] for path in tests if len(path.parts) == 2} | {"tests"}
    quick = {name.split("/")[0] if "/" in name else "tests" for name in files}
    assert rooms - quick == LEFT_OUT.keys()


def test_a_list_over_several_lines_is_read_whole():
    text = "A := b\nQUICK := a.py \\\n    lab/b.py\n\nquick:\n\techo $(QUICK)\n"
    assert listed(text) == {"QUICK": "a.py      lab/b.py"}
