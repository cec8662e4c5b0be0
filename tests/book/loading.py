"""When all that a page has asked for is there.

Playwright's ``networkidle`` is not used: on a busy machine it was seen to miss the moment, and to
wait its whole half minute with no request under way (2 of some 540 visits).
"""

import time

QUIET = 0.5  # seconds without a request, as Playwright has it
LONGEST = 60  # seconds until then, on a busy machine, too
READY = "() => Promise.all([window.MathJax?.startup?.promise, document.fonts.ready]).then(() => {})"
IDLE = "() => new Promise(idle => requestIdleCallback(() => idle()))"


class Loading:
    """The requests of a page, from before it is opened until it asks for nothing more."""

    def __init__(self, page):
        self.page, self.under_way, self.last = page, set(), time.monotonic()
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def _began(self, request):
        self.under_way.add(request)
        self.last = time.monotonic()

    def _ended(self, request):
        self.under_way.discard(request)
        self.last = time.monotonic()

    def wait(self):
        """Until the page, once loaded, has its formulas and fonts, and all that scripts fetch."""
        self.page.evaluate(READY)
        end = time.monotonic() + LONGEST
        while self.under_way or time.monotonic() - self.last < QUIET:
            self.page.evaluate(IDLE)
            assert time.monotonic() < end, [request.url for request in self.under_way]
