"""Twenty interruptions and kills at random moments: ``pytest -s tests/cluster/soak.py``.

Whatever is hit, and whenever: within ten seconds nothing of the run is left on any host, and a
caller that lives has said what happened. A killed slurmd counts from when Slurm has noticed.
"""

import random
import signal
import time

import pytest
from box_traces import Cluster, SlurmCluster, traces_of
from test_hosts_end import Caller, cut, gone, kill_agent, kill_host, kill_ssh, kill_worker
from test_on_slurm import cancel, kill_slurmd

from d2lmgpu.process.cluster import box, state

HARMS = [kill_worker, kill_host, cut, kill_agent, kill_ssh, signal.SIGINT, signal.SIGKILL]
SLURM_HARMS = [kill_worker, cancel, kill_slurmd, signal.SIGINT, signal.SIGKILL]
TIMES = 20


@pytest.mark.parametrize("with_slurm", [False, True])
def test_twenty_ends_at_random_moments_leave_nothing(tmp_path, monkeypatch, with_slurm):
    chance, latest = random.Random(0), 0
    kind, harms = (SlurmCluster, SLURM_HARMS) if with_slurm else (Cluster, HARMS)
    wanted = ["Slurm(nodes=2, gpus=2)"] if with_slurm else []
    for number in range(TIMES):
        folder, files = tmp_path / f"cluster-{number}", tmp_path / f"files-{number}"
        files.mkdir()
        monkeypatch.setenv(state.VARIABLE, str(folder))
        box.up(2, with_slurm=with_slurm)
        hosts, caller = kind(folder), Caller(files, *wanted)
        harm = harms[number % len(harms)]
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
    print(f"\n{TIMES} ends{' on Slurm' * with_slurm} left nothing, after at most {latest:.1f} s")
