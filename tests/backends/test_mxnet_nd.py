"""The ``nd`` blocks of the Gluon chapter run, in a process of their own, and compute the same."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np

CHAPTER = Path(__file__).parents[2] / "chapters" / "concise" / "mxnet.ipynb"
NOTEBOOK = nbformat.read(CHAPTER, as_version=4)

# Two updates from weights that depend on nothing but the shapes; the last batch has one image.
UPDATES = """
import numpy as onp
random = onp.random.RandomState(0)
for p in net.collect_params().values():
    if p.name.endswith("weight"):
        std = onp.sqrt(2 / onp.prod(p.shape[1:]))
        p.set_data(array(random.normal(0, std, p.shape).astype("float32")))
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
for n in (5, 1):
    X, y = random.uniform(size=(n, 1, 28, 28)).astype("float32"), random.randint(0, 10, size=n)
    train_batch(net, array(X), array(y.astype("float32")), trainer, devices)
learned = [p for p in net.collect_params().values() if p.grad_req != "null"]
for device in devices:
    theta = onp.concatenate([p.data(device).asnumpy().ravel() for p in learned])
    onp.save(f"{out}{devices.index(device)}.npy", theta)
"""


def definitions(word=""):
    """The sources of the cells tagged ``define`` that hold ``word``."""
    sources = [c.source for c in NOTEBOOK.cells if "define" in c.metadata.get("tags", [])]
    return "\n".join(source for source in sources if word in source)


def nd_blocks():
    text = "\n".join(c.source for c in NOTEBOOK.cells if c.cell_type == "markdown")
    opening = "<details><summary>The same in <code>nd</code></summary>"
    return re.findall(rf"{opening}\n\n```python\n(.*?)```", text, re.S)


def run(program, out):
    program = f"out = {str(out)!r}\n" + program + UPDATES
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    return [np.load(f"{out}{i}.npy") for i in range(2)]


def test_nd_blocks_compute_what_the_chapter_computes(tmp_path):
    model, start, step = nd_blocks()
    program = [
        model,
        definitions("def resnet18"),
        start,
        step,
        "array = nd.array\nassert len(outputs) == 2",
    ]
    assert not re.search(r"\bnpx?\b|d2l", "\n".join(program))
    old = run("\n".join(program), tmp_path / "nd")

    program = [
        definitions(),
        "devices = d2l.devices(2)",
        "net = resnet18(10, width=8)",
        "net.initialize(init.Zero(), ctx=devices)",
        "net(np.zeros((1, 1, 28, 28), ctx=devices[0]))",
        "array = np.array",
    ]
    new = run("\n".join(program), tmp_path / "np")
    for ours, theirs in zip(old, new, strict=True):
        assert np.isfinite(ours).all()
        assert np.linalg.norm(ours - theirs) < 1e-5 * np.linalg.norm(ours)
