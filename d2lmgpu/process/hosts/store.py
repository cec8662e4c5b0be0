"""The store in which PyTorch's workers on several hosts find each other; the caller holds it."""

import socket

from d2lmgpu.process.failures import LaunchError


def hold_store(host, address) -> tuple:
    """A TCPStore at this machine's ``address``, as ``host`` sees it, and (address, port).

    Raises LaunchError where nothing can be reached at that address.
    """
    from torch.distributed import TCPStore

    try:
        listener = socket.create_server((address, 0))
    except OSError as error:
        raise LaunchError(
            f"Host {host} sees this machine as {address}, where nothing can be reached ({error}). "
            "Start from a machine that the hosts reach by its own address."
        ) from error
    port = listener.getsockname()[1]
    store = TCPStore(
        address, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
    )
    return store, (address, port)
