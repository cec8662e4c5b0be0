"""The book's scripts and styles: all land in one folder, where the last of a name is left."""

from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def test_no_two_have_the_same_name_in_the_book():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    names = Counter()
    for entry in config["sphinx"]["config"]["html_static_path"]:
        path = ROOT / entry
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
        base = path if path.is_dir() else path.parent
        names.update(file.relative_to(base).as_posix() for file in files)
    assert len(names) > 40
    assert [name for name, count in names.items() if count > 1] == []
