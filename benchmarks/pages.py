"""How soon the built pages show: ``python -m benchmarks.pages`` after ``make book``, at rest.

Each page is opened three times by a browser that has seen nothing yet, over a connection of
10 Mbit/s and 40 ms that sends gzip. It prints the median of the largest paint and of the layout
shift until the page is complete, and whether they are within their bounds.
"""

import sys
from statistics import median

import yaml

from tests.programs import program
from tests.static_site import Compressing, served

REPEATS = 3
MBIT, LATENCY = 10, 40  # megabits a second; milliseconds there and back
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


def first_visit(browser, address):
    """Seconds to the largest paint, and the layout shift."""
    with browser.new_context(viewport=WINDOW) as context:
        page = context.new_page()
        rate = MBIT * 1_000_000 / 8
        throttle = {"downloadThroughput": rate, "uploadThroughput": rate, "latency": LATENCY}
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", throttle | {"offline": False})
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
    with served("_build/html", Compressing) as address, open_browser() as browser:
        for name in names:
            visits = [first_visit(browser, f"{address}/{name}.html") for _ in range(REPEATS)]
            paint, shift = map(median, zip(*visits))
            late = paint > PAINT or shift > SHIFT
            over += late
            print(f"{name:40} {paint:5.2f} s {shift:6.3f}{'  over' if late else ''}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
