"""What tests do in a page that can train: a run from start to end, and the kernels one by one."""

import base64
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "assets" / "training"
SECONDS = 120  # a hang is a failure: nothing here takes as long

sys.path.append(str(ROOT / "tools"))
import page_images  # noqa: E402  a tool, not a module of the package

USUAL = {
    "network": "mlp",
    "devices": 1,
    "batchSize": 256,
    "lr": 0.1,
    "epochs": 1,
    "algorithm": "tree",
    "seed": 0,
}


def train(page, until=None, **settings):
    """A run from start to end, or until so many steps are told: its outcome, with all events."""
    return page.evaluate(
        """async ([settings, until, milliseconds]) => {
            const events = [];
            const late = new Promise((_, reject) => setTimeout(
                () => reject(Error(`no end after ${events.length} events`)), milliseconds));
            await Promise.race([Training.load(), late]);
            const run = Training.start(settings, (event) => {
                events.push(event);
                if (event.type === "step" && event.step >= until) run.stop();
            });
            return {...await Promise.race([run.done, late]), events};
        }""",
        [USUAL | settings, until or 10**9, 1000 * SECONDS],
    )


KERNELS = """async (build) => {
    await Training.load();
    const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const kernels = build === "plain" ? TrainingCode.plain()
        : (await WebAssembly.instantiate(bytes(TrainingCode.simd))).instance.exports;
    const view = (at, length) => new Uint8Array(kernels.memory.buffer, at, length);
    const text = (at, length) => {
        let letters = "";
        for (const byte of view(at, length)) letters += String.fromCharCode(byte);
        return btoa(letters);
    };
    window.kernels = {...kernels,
        read: (at, length) => text(at, length),
        write: (at, data) => view(at, bytes(data).length).set(bytes(data))};
}"""


class Kernels:
    """The exported functions of a build, by name, in a page; with its memory."""

    def __init__(self, page, build):
        self.page = page
        page.evaluate(KERNELS, build)
        self.write(self.place_of_data(), np.frombuffer(page_images.block(), np.uint8))

    def __getattr__(self, name):
        return lambda *arguments: self.page.evaluate(
            "([name, arguments]) => window.kernels[name](...arguments)", [name, arguments]
        )

    def floats(self, at, count):
        read = self.__getattr__("read")(at, 4 * count)
        return np.frombuffer(base64.b64decode(read), np.float32)

    def write(self, at, array):
        self.__getattr__("write")(at, base64.b64encode(array.tobytes()).decode())
