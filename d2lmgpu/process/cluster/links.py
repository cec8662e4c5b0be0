"""The links of a cluster: a pair of interfaces a host, a bridge between them, shaped both ways.

    this machine — bridge — BRIDGEn1 ═ eth0 of host n1
                          — BRIDGEn2 ═ eth0 of host n2

A token bucket at both ends of each pair (``═``) lets no more through than the rate.
"""

import contextlib
import hashlib
import ipaddress
import json
import socket
import subprocess
from collections.abc import Iterator

from d2lmgpu.process.cluster.state import RATE, ClusterError

MANY = 200  # hosts that have an address


def run(*command, text=None) -> str:
    """What ``command`` printed; ClusterError with its own words if it failed."""
    done = subprocess.run([*map(str, command)], input=text, text=True, capture_output=True)
    if done.returncode:
        raise ClusterError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def bridge_of(folder) -> str:
    """The name of the bridge of the cluster in ``folder``; those of its links begin with it."""
    return "d2l" + hashlib.sha256(str(folder).encode()).hexdigest()[:6]


@contextlib.contextmanager
def free_network() -> Iterator[ipaddress.IPv4Network]:
    """A network of 256 private addresses, for one `up` alone until its bridge has them.

    Another one, for other hosts, may be looking for addresses at this moment.
    """
    for network in ipaddress.ip_network("10.213.0.0/16").subnets(new_prefix=24):
        with socket.socket(socket.AF_UNIX) as claim:
            try:
                claim.bind(f"\0d2lmgpu-network {network}")
            except OSError:
                continue
            if not any(network.overlaps(in_use) for in_use in _used()):
                yield network
                return
    raise ClusterError("All of 10.213.0.0/16 is in use here: no addresses are left for hosts.")


def _used():
    """The networks of this machine's own interfaces."""
    interfaces = json.loads(run("ip", "-json", "-4", "address"))
    addresses = [a for interface in interfaces for a in interface.get("addr_info", ())]
    return [ipaddress.ip_network(f"{a['local']}/{a['prefixlen']}", strict=False) for a in addresses]


def connect(bridge, network, hosts) -> None:
    """Make the bridge, whose address is the last of ``network``, and a link to each host.

    ``hosts`` maps names to ``address`` and ``pid``, a process in the host's network.
    """
    lines = [
        f"link add {bridge} type bridge",
        f"link set {bridge} up",
        f"address add {network[-2]}/{network.prefixlen} dev {bridge}",
    ]
    for name, host in hosts.items():
        link = bridge + name
        lines += [
            f"link add {link} type veth peer name eth0 netns {host['pid']}",
            f"link set {link} master {bridge} up",
        ]
    run("ip", "-batch", "-", text="\n".join(lines))
    for host in hosts.values():
        address = f"{host['address']}/{network.prefixlen}"
        inside = f"address add {address} dev eth0\nlink set eth0 up\n"
        run("nsenter", "-t", host["pid"], "-n", "ip", "-batch", "-", text=inside)


def _burst(rate):
    """Bytes that pass at once after a pause: those of a millisecond, or a few frames."""
    number, unit = RATE.fullmatch(rate).groups()
    bits_per_second = int(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit]
    return max(16_000, int(bits_per_second / 8 / 1000))


def shape(bridge, hosts, rate) -> None:
    """Let ``rate`` (1gbit, 100mbit) through each link, in each direction."""
    bucket = f"root tbf rate {rate} burst {_burst(rate)} latency 50ms"
    for name, host in hosts.items():
        run("tc", "qdisc", "replace", "dev", bridge + name, *bucket.split())
        inside = ["nsenter", "-t", host["pid"], "-n"]
        run(*inside, "tc", "qdisc", "replace", "dev", "eth0", *bucket.split())


def disconnect(bridge) -> None:
    """Remove the bridge and all links, as far as they are there."""
    for link in json.loads(run("ip", "-json", "link")):
        if link["ifname"].startswith(bridge):
            # A link goes with its host, perhaps at this moment.
            subprocess.run(["ip", "link", "delete", link["ifname"]], capture_output=True)
