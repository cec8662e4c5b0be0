"""Keep a training alive on hosts that may die, be cut off, and come back:

    python elastic.py "n1 n2 n3" train_elastic.py --checkpoints DIR --epochs 20

One torchrun a host, by ssh. The store in which they meet is held here, so that no host is one
that the others cannot lose. A torchrun that has ended before the training did is started again;
the hosts that are there train meanwhile. Ctrl-C, or SIGTERM, ends all of them, after a checkpoint.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from d2lmgpu.process.cluster.state import ssh_options
from d2lmgpu.process.hosts.ssh import PACKAGE
from d2lmgpu.process.hosts.store import hold_store

TRIES, LONG = 3, 300  # torchruns that fail one after another, none of which lasted so many seconds
ALONE = 60  # seconds in which no host could be reached
CONNECT = 3  # seconds in which a host answers
AGAIN = 1  # seconds until a host is tried again
LEAVE = 40  # seconds that torchrun has to end: it gives its workers 30
NO_WAY = 255  # ssh's own exit status

# How soon it is noticed that a host has gone. Without the second variable a host that joins later
# waits for ever in the store of an earlier meeting.
MEETING = ("join_timeout=60,last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3,"
           "heartbeat_timeout=2,read_timeout=10,is_host=0")
VARIABLES = "OMP_NUM_THREADS=1 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
# Runs on a host. When its standard input ends, since the link or the caller has gone, so does
# torchrun, and its workers save.
REMOTE = """cd {folder} && exec 3<&0
env {variables} {python} -m torch.distributed.run {options} {words} </dev/null &
torchrun=$!
{{ cat <&3; kill -TERM $torchrun; }} >/dev/null 2>&1 &
wait $torchrun"""


class Host:
    """A host, and the torchrun on it."""

    def __init__(self, name, number, endpoint, words):
        options = [f"--nnodes=1:{number}", "--nproc-per-node=1", "--max-restarts=5",
                   "--monitor-interval=0.5", "--rdzv-backend=c10d", f"--rdzv-id={os.getpid()}",
                   f"--rdzv-endpoint={endpoint}", f"--rdzv-conf={MEETING}"]
        remote = REMOTE.format(
            folder=shlex.quote(os.getcwd()), python=shlex.quote(sys.executable),
            variables=f"{VARIABLES} {shlex.quote(f'PYTHONPATH={PACKAGE}')}",
            options=shlex.join(options), words=shlex.join(words),
        )
        self.name, self.failed, self.process, self.ended = name, 0, None, 0
        self._command = ssh(name, remote)

    def start(self):
        self._words, self._begun = tempfile.TemporaryFile("w+"), time.monotonic()
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=sys.stdout, stderr=self._words,
            start_new_session=True,
        )

    def look(self):
        """Start torchrun where there is none; its exit status if it has just ended, else None."""
        if self.process is None:
            if time.monotonic() > self.ended + AGAIN:
                self.start()
            return None
        status = self.process.poll()
        if status is not None:
            self.process, self.ended = None, time.monotonic()
            if status not in (0, NO_WAY):
                lasted = self.ended - self._begun
                self.failed = 1 + (self.failed if lasted < LONG else 0)
        return status

    def is_there(self):
        """Whether its ssh has lasted longer than one that finds nobody."""
        return self.process and time.monotonic() > self._begun + 2 * CONNECT

    def last_lines(self):
        self._words.seek(0)
        return "\n".join(self._words.read().splitlines()[-20:])

    def leave(self):
        if self.process:
            self.process.stdin.close()

    def end(self, deadline):
        if self.process:
            try:
                self.process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def ssh(host, command):
    options = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT}", "-o", "ServerAliveInterval=2",
               "-o", "ServerAliveCountMax=3", *ssh_options([host])]
    return ["ssh", *options, "--", host, command]


def address_of_this_machine(host):
    """The address by which ``host`` sees this machine."""
    seen = subprocess.run(ssh(host, "echo $SSH_CONNECTION"), capture_output=True, text=True)
    if seen.returncode:
        raise SystemExit(f"Host {host} cannot be reached: {seen.stderr.strip()}")
    return seen.stdout.split()[0]


def keep(hosts):
    """0 once the training has ended on all hosts that are there; else what went wrong."""
    alive = time.monotonic()
    while True:
        for host in hosts:
            status = host.look()
            if status == 0:
                return 0
            if host.failed == TRIES:
                return f"torchrun failed {TRIES} times on {host.name}:\n{host.last_lines()}"
        if any(host.is_there() for host in hosts):
            alive = time.monotonic()
        if time.monotonic() - alive > ALONE:
            return f"No host could be reached for {ALONE} s:\n{hosts[0].last_lines()}"
        time.sleep(0.1)


def main(names, *words):
    names = names.split()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    address = address_of_this_machine(names[0])
    store, (_, port) = hold_store(names[0], address)
    hosts = [Host(name, len(names), f"{address}:{port}", words) for name in names]
    try:
        result = keep(hosts)
    except KeyboardInterrupt:
        result = "It was stopped. Started again in the same way, it goes on from its checkpoint."
    deadline = time.monotonic() + (10 if result == 0 else LEAVE)
    for host in hosts:
        if result != 0:
            host.leave()
    for host in hosts:
        host.end(deadline)
    del store  # not before: the hosts meet there
    return result


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
