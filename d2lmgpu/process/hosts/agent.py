"""What ssh or srun starts on a host: ``python -u -m d2lmgpu.process.hosts.agent FRAMEWORK``.

It starts a supervisor of workers there, as ``launch`` does on the caller's own machine, and carries
messages between that and the caller: see ``frames``. It ends when its standard input does, or when
the caller has been silent for too long, and then nothing is left on this host.
"""

import contextlib
import json
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
from typing import NoReturn

from d2lmgpu.process.addresses import held_ports
from d2lmgpu.process.hosts import frames
from d2lmgpu.process.settings import versions
from d2lmgpu.process.supervisors import start_ranks

SIOCGIFADDR = 0x8915
# What belongs to the caller's machine and is no setting of the run.
ITS_OWN = {"CUDA_VISIBLE_DEVICES", "DISPLAY", "HOSTNAME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"}


def main(framework) -> NoReturn:
    caller, address = addresses()
    send = frames.Sender(os.fdopen(os.dup(1), "wb", buffering=0))
    os.dup2(2, 1)  # what anything prints here is no message
    # Hosts may have addresses and no names, of which PyTorch warns once a connection.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    child = start_ranks(framework, interface=interface_with(address))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # Slurm's, when the job is cancelled
    try:
        send.plain(frames.FIRST)
        hello = {"caller": caller, "address": address, "port": held_ports(1, address)[0]}
        send(frames.HELLO, json.dumps(hello | versions(framework)).encode())
        threading.Thread(target=beat, args=[send], daemon=True).start()
        job = []
        for kind, content in frames.received(sys.stdin.buffer, frames.SILENCE):
            if kind == frames.PLACE:
                place = json.loads(content)
            elif kind == frames.JOB:
                job.append(content)
            elif kind == frames.START:
                child.send(on_this_host(pickle.loads(b"".join(job)) | place, child))
                job.clear()
                threading.Thread(target=report, args=[send, child, place], daemon=True).start()
            elif kind == frames.DONE:
                child.finish()
    except TimeoutError:  # the link has gone, and sshd would hold its end for long
        with contextlib.suppress(OSError):
            if "SSH_CONNECTION" in os.environ:
                os.kill(os.getppid(), signal.SIGTERM)
    except OSError:
        pass  # the caller has gone
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.close()
        os._exit(0)


def addresses() -> tuple:
    """The caller's address as this host sees it, and this host's own on the way there."""
    if caller := os.environ.get("SLURM_LAUNCH_NODE_IPADDR"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((caller, 9))  # sends nothing
            return caller, probe.getsockname()[0]
    caller, _, address, _ = os.environ["SSH_CONNECTION"].split()
    return caller, address


def interface_with(address) -> str | None:
    """The network interface that has ``address``, None where that cannot be told (IPv6)."""
    import fcntl  # which Windows lacks

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                request = struct.pack("256s", name.encode())
                reply = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
                if socket.inet_ntoa(reply[20:24]) == address:
                    return name
    return None


def on_this_host(job, child) -> bytes:
    """The job, pickled, with the caller's environment where this host has no setting of its own."""
    environ = {name: value for name, value in job["environ"].items() if name not in ITS_OWN}
    return pickle.dumps(job | {"environ": environ | os.environ | child.environ})


def beat(send) -> None:
    with contextlib.suppress(OSError):
        while True:
            send(frames.BEAT, str(time.time_ns()).encode())
            time.sleep(frames.EVERY)


def report(send, child, place) -> None:
    """Tell the caller what the workers say and, once all have ended, what they have left."""

    def on_event(event):
        if event["event"] == "done":
            send(frames.DONE)
        else:
            send(frames.EVENT, json.dumps(event).encode())

    with contextlib.suppress(OSError):
        end = child.read(
            on_event=on_event,
            on_output=lambda output: send(frames.OUTPUT, output),
            on_errors=lambda output: send(frames.ERRORS, output),
        )
        for name in place["processes"]:
            send_file(send, f"result-{name}", child.left(f"result-{name}"))
            send_file(send, f"error-{name}", child.left(f"error-{name}"))
            send_file(send, f"log-{name}", child.log(f"log-{name}"))
        send_file(send, "log", child.log("log"))
        send(frames.EXIT, json.dumps(end).encode())


def send_file(send, name, content) -> None:
    """Send the caller what the workers have left in a file, if they have."""
    data = content.encode() if isinstance(content, str) else content or b""
    for piece in frames.pieces(data):
        send(frames.FILE, name.encode() + b"\n" + piece)


if __name__ == "__main__":
    main(*sys.argv[1:])
