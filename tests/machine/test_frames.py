"""To look at the threads of a process never makes it wait for ever."""

import subprocess
import sys

LOOKS = """
import gc, threading, time
from d2lmgpu.machine.frames import current_frames

looks = threading.local()

def collected(phase, info):
    if phase == "start" and getattr(looks, "now", False):
        time.sleep(0.01)  # another thread goes on, and ends

def look():
    for _ in range(300):
        looks.now = True
        assert threading.get_ident() in current_frames()
        looks.now = False

gc.callbacks.append(collected)
gc.set_threshold(1)
thread = threading.Thread(target=look)
thread.start()
while thread.is_alive():
    threading.Thread(target=int).start()
assert gc.isenabled()
gc.disable()
current_frames()
assert not gc.isenabled()
"""


def test_a_look_while_threads_end_and_garbage_is_collected_ends():
    done = subprocess.run([sys.executable, "-c", LOOKS], timeout=60)
    assert done.returncode == 0
