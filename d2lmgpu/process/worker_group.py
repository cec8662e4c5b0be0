"""All processes of one ``launch`` as an object, which goes with the job from the caller to them.

It says what they are called, on which host each of them is, and what it does. PyTorch's workers
need nobody else, see ``torch_group``; around MXNet's are servers and a scheduler, see ``roles``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class WorkerGroup(ABC):
    """The processes of a launch; a subclass has those of one framework.

    Parameters
    ----------
    num_processes : int
        Workers on each host.
    """

    num_processes: int
    framework: ClassVar[str]
    """The module that each of the processes imports."""
    is_watched: ClassVar[bool]
    """Whether workers of one host leave in their folder what they wait for, see ``hangs``."""

    def on_host(self, index, num_hosts) -> list[str]:
        """Names of the processes on one of the hosts: a worker is called by its rank.

        Parameters
        ----------
        index : int
            Of the host, in the order of the ranks.
        num_hosts : int

        Returns
        -------
        list of str
            Workers first.
        """
        first = index * self.num_processes
        return [str(rank) for rank in range(first, first + self.num_processes)]

    def title(self, name, num_hosts) -> str:
        """What the process of this name, of so many hosts, is called in a message."""
        return f"Worker {name} of {self.num_processes * num_hosts}"

    def in_words(self, processes) -> dict[str, str]:
        """What each process is called in a message, with its host.

        Parameters
        ----------
        processes : dict
            Names of processes by host; of this host alone, by None.

        Returns
        -------
        dict
            By name, in the order of ``processes``.
        """
        words = {}
        for host, names in processes.items():
            for name in names:
                title = self.title(name, len(processes))
                words[name] = f"{title}, on {host}," if host else title
        return words

    @abstractmethod
    def prepare(self) -> None:
        """Import in the caller what ``meet`` needs, while the hosts import their framework."""

    @abstractmethod
    def meet(self, links) -> tuple[list, Any, tuple[str, int]]:
        """Where the workers of several hosts find each other; asked by the caller.

        Parameters
        ----------
        links : list of Link
            To hosts that have said ``hello``.

        Returns
        -------
        tuple
            The links in the order of the ranks, what the caller must keep meanwhile or None, and
            the address and port.
        """

    def checks(self) -> list:
        """Functions of the job, which raise if there must be no workers of it on a host.

        Each is called in a process of its own, before there are any.
        """
        return []

    def environments(self, job) -> dict[str, dict[str, str]]:
        """By name of a process on this host: what its environment has more than the job says."""
        return {}

    @abstractmethod
    def work(self, job, call) -> Any:
        """In a worker: ``call()`` the function among its peers; what it returned."""
