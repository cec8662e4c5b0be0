"""The lab where Jupyter runs in the background: SIGINT is ignored by inheritance."""

import signal

import pytest
from trains import waits


@pytest.fixture
def background():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("all_the_time")
def test_stop_needs_no_kill(background, recorder):
    recorder.start(waits)
    recorder.until("point")
    recorder.runner.stop()
    assert recorder.end().message == "Stopped."
