"""Packages that exchange in ways of their own, by stand-ins: refused at the script's own import."""

import pytest
from soaking import sample

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check.run import check

TRAINS = """
import torch
{imports}

net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    net(torch.ones(8, 4)).sum().backward()
    optimizer.step()
"""
PACKAGES = {  # how a script imports it -> its files
    "import horovod.torch as hvd": ["horovod/__init__.py", "horovod/torch.py"],
    "import deepspeed": ["deepspeed/__init__.py"],
}


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Stand-ins for both, of which nobody but the script's path knows, and a library of others."""
    folder = tmp_path / "site-packages"
    for names in PACKAGES.values():
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("import torch")
    (folder / "library.py").write_text("import deepspeed, horovod")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return tmp_path


@pytest.mark.parametrize("imports", sample(1, PACKAGES))
def test_a_package_that_was_never_watched_is_refused_with_its_line(packages, imports):
    script = packages / "train.py"
    script.write_text(TRAINS.format(imports=imports))
    name = imports.split()[1].split(".")[0]
    with pytest.raises(WatchError, match=rf"imports {name} \(at train\.py:3\)"):
        check(script)


def test_what_a_library_imports_by_itself_is_not_refused(packages):
    script = packages / "train.py"
    script.write_text(TRAINS.format(imports="import library"))
    assert check(script).updates == 5
