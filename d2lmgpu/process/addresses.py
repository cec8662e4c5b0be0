"""Where the processes of a host meet: the loopback, and ports that nobody else is given."""

import socket
import sys

LOOPBACK, LOOPBACK_INTERFACE = "127.0.0.1", "lo0" if sys.platform == "darwin" else "lo"


def held_ports(number, address=LOOPBACK) -> list[int]:
    """So many ports of ``address``, in rising order, that nobody else is given.

    On Linux they stay bound, without listening, until this process ends: then a neighbour that asks
    for any free port gets another one, and whoever listens at one of these by its number, with
    SO_REUSEADDR as ps-lite and TCPStore do, still can. On BSD and macOS they are only free now.

    Parameters
    ----------
    number : int
    address : str

    Returns
    -------
    list of int
    """
    sockets = [socket.socket() for _ in range(number)]
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, 0))
    ports = sorted(sock.getsockname()[1] for sock in sockets)
    for sock in sockets:
        if sys.platform == "linux":
            sock.detach()  # the system closes it with this process
        else:
            sock.close()
    return ports
