"""What was prepared for the next launch is given to one launch, whichever thread asks for it."""

import itertools
import sys
import threading
from types import SimpleNamespace

import d2lmgpu.launch as launching


def test_two_threads_after_prepare_do_not_take_the_same_child(monkeypatch):
    """The second comes while the first is before one of its instructions, at each in turn."""
    monkeypatch.setattr(
        launching, "start_ranks", lambda *modules: SimpleNamespace(close=lambda: None)
    )
    monkeypatch.setattr(launching, "_run", lambda child, *rest: child)

    def take(taken):
        taken.append(launching.launch(print, num_processes=1))

    def taken_by_two(instruction):
        """The children of both; those of the first alone once it has no such instruction."""
        launching.prepare()
        taken, passed = [], itertools.count()
        second = threading.Thread(target=take, args=[taken])

        def trace(frame, event, arg):
            frame.f_trace_opcodes = True
            if event == "opcode" and next(passed) == instruction:
                second.start()
                second.join(0.2)  # one that waits for the first goes on when that does
            return trace if frame.f_code.co_filename == launching.__file__ else None

        def be_first():
            sys.settrace(trace)
            take(taken)

        first = threading.Thread(target=be_first)
        first.start()
        first.join()
        if second.ident is not None:
            second.join()
        return taken

    for instruction in itertools.count():
        taken = taken_by_two(instruction)
        if len(taken) == 1:
            break
        assert taken[0] is not taken[1], f"both have one child (instruction {instruction})"
    assert instruction > 20
