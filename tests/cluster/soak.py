"""Twenty interruptions and kills at random moments: ``pytest -s tests/cluster/soak.py``.

Whatever is hit, and whenever: within ten seconds nothing of the run is left on any host, and a
caller that lives has said what happened.
"""

import random
import signal
import time

from box_traces import Cluster, traces_of
from test_hosts_end import Caller, cut, gone, kill_agent, kill_host, kill_ssh, kill_worker

from d2lmgpu.cluster import box, state

HARMS = [kill_worker, kill_host, cut, kill_agent, kill_ssh, signal.SIGINT, signal.SIGKILL]
TIMES = 20


def test_twenty_ends_at_random_moments_leave_nothing(tmp_path, monkeypatch):
    chance, latest = random.Random(0), 0
    for number in range(TIMES):
        folder, files = tmp_path / f"cluster-{number}", tmp_path / f"files-{number}"
        files.mkdir()
        monkeypatch.setenv(state.VARIABLE, str(folder))
        box.up(2)
        hosts, caller, harm = Cluster(folder), Caller(files), HARMS[number % len(HARMS)]
        if isinstance(harm, signal.Signals):
            time.sleep(8 * chance.random())
            caller.process.send_signal(harm)
        else:
            caller.until("ready")
            time.sleep(chance.random())
            harm(hosts, caller)
        start = time.monotonic()
        if harm != signal.SIGKILL:
            caller.until("ended")
        gone(hosts, caller, start)
        latest = max(latest, time.monotonic() - start)
        caller.limit.cancel()
        caller.process.kill()
        caller.process.communicate()
        box.down()
        assert traces_of(folder) == []
    print(f"\n{TIMES} ends left nothing, after at most {latest:.1f} s")
