"""How soon the built pages show: ``python -m benchmarks.pages`` after ``make book``, at rest.

Each page is opened three times by a browser that has seen nothing yet, from a server that sends
gzip at 10 Mbit/s over all connections together, 40 ms after it was asked. (A slow network emulated
by Chromium itself stops reading now and then, and the page waits for ever.) It prints the median
of the largest paint and of the layout shift until the page is complete, and whether they are
within their bounds.
"""

import sys
import threading
import time
from statistics import median

import yaml

from tests.programs import program
from tests.static_site import Compressing, served

REPEATS = 3
MBIT, LATENCY = 10, 40  # megabits a second; milliseconds there and back
PIECE = 4096  # bytes sent at once
PAINT, SHIFT = 1.5, 0.05  # seconds; the bounds
WINDOW = {"width": 1280, "height": 800}
SEEN = """() => new Promise(resolve => {
    let paint = 0, shift = 0;
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) paint = entry.startTime / 1000;
    }).observe({ type: "largest-contentful-paint", buffered: true });
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve([paint, shift]), 200);
})"""


class Line:
    """What is sent over it, it lets through one after another at ``rate`` bytes a second."""

    def __init__(self, rate):
        self.rate = rate
        self.free = 0.0
        self.lock = threading.Lock()

    def wait(self, size) -> None:
        with self.lock:
            self.free = max(time.monotonic(), self.free) + size / self.rate
            seconds = self.free - time.monotonic()
        time.sleep(max(0, seconds))


class Slow(Compressing):
    line = Line(MBIT * 1_000_000 / 8)

    def do_GET(self) -> None:
        time.sleep(LATENCY / 1000)
        super().do_GET()

    def send_body(self, data) -> None:
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            self.line.wait(len(piece))
            self.wfile.write(piece)


def first_visit(browser, address) -> dict:
    """Seconds to the largest paint, and the layout shift."""
    with browser.new_context(viewport=WINDOW) as context:
        page = context.new_page()
        page.goto(address)
        page.evaluate("() => window.MathJax?.startup?.promise")
        page.wait_for_load_state("networkidle")
        return page.evaluate(SEEN)


def main() -> int:
    with open("_toc.yml") as file:
        toc = yaml.safe_load(file)
    names = [toc["root"], *(page["file"] for part in toc["parts"] for page in part["chapters"])]
    over = 0
    print(f"{MBIT} Mbit/s, {LATENCY} ms, median of {REPEATS}; at most {PAINT} s and {SHIFT}")
    open_browser = program("chromium").chromium
    with served("_build/html", Slow) as address, open_browser() as browser:
        for name in names:
            visits = [first_visit(browser, f"{address}/{name}.html") for _ in range(REPEATS)]
            paint, shift = map(median, zip(*visits))
            late = paint > PAINT or shift > SHIFT
            over += late
            print(f"{name:40} {paint:5.2f} s {shift:6.3f}{'  over' if late else ''}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
