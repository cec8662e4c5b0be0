"""What hosts tell of themselves when they are there, before any of them gets a job."""

import ipaddress

from d2lmgpu.process.failures import LaunchError


def check_addresses(links) -> None:
    """LaunchError for a host that was reached on the loopback, where others do not find it."""
    own = [link for link in links if ipaddress.ip_address(link.hello["address"]).is_loopback]
    if own and len(own) < len(links):
        raise LaunchError(
            f"Host {own[0].host} was reached at {own[0].hello['address']}, which is this machine's "
            "own loopback: the other hosts cannot find it there. Give the name by which they reach "
            "it."
        )


def check_versions(host, of_host, own) -> None:
    """LaunchError if a host has another Python, framework or code than this process."""
    for what, version in own.items():
        if (theirs := of_host[what]) != version:
            raise LaunchError(
                f"Host {host} has {what} {theirs}, here it is {version}: a function can only "
                "be sent between equal ones. Install the same on both."
            )
