"""``d2lmgpu doctor --links``: what the links between ranks carry, and which of them are off.

Processes exchange messages pair by pair, then all sum an array: over NCCL where each has a GPU,
else over gloo. Bandwidths are counted as nccl-tests counts them: *bus bandwidth* is the array's
bytes over the time of an allreduce, times 2(k-1)/k, and is what each link carries in a ring.
"""

from dataclasses import dataclass
from statistics import median

from d2lmgpu.costmodel.model import COST
from d2lmgpu.costmodel.presets import PRESETS
from d2lmgpu.launch import launch
from d2lmgpu.machine.devices import DeviceError, places
from d2lmgpu.machine.hardware import SHARED, installed_gpus
from d2lmgpu.records.run import counted

SLOW_PAIR, SLOW_MACHINE = 0.5, 0.7  # of the fastest pair, and of the published bus bandwidth
LITTLE = 2**26  # bytes: what Docker gives unless it is told otherwise

# What a driver calls a GPU -> the machine of the cost model whose bus bandwidth was published
GPUS = {
    "H200": "H200",
    "H100": "H100",
    "A100-SXM": "A100",
    "V100-SXM": "V100 NVLink",
    "RTX 4090": "RTX 4090",
}


@dataclass(frozen=True)
class Links:
    """What was measured among ``len(hosts)`` ranks."""

    hosts: list[str]  # of each rank
    pairs: dict[tuple[int, int], tuple[float, float]]  # latency in s, bytes/s in one direction
    sums: list[tuple[int, float]]  # bytes of an array, and seconds of its allreduce
    shared_memory: dict[str, int | None]  # of each host, bytes of /dev/shm; None: there is none
    gpus: list[str]  # of this host, as the driver lists them

    def bus_bandwidth(self, number) -> float:
        """Bytes a second in the ``number``-th sum, as nccl-tests counts them."""
        size, seconds = self.sums[number]
        _, share = COST["ring"](len(self.hosts))
        return share * size / seconds

    def inside(self, pair) -> bool:
        """Whether both ranks of a pair are on one host."""
        return self.hosts[pair[0]] == self.hosts[pair[1]]


def measure(num_processes: int, hosts=None) -> Links:
    """Measure the links among so many ranks on this host, or on each of ``hosts``.

    Takes seconds, and more over slow links. Raises what ``launch`` raises.
    """
    from d2lmgpu.torch.links import in_ranks

    results = launch(in_ranks, num_processes=num_processes, hosts=hosts)
    names = [host for host, *_ in results]
    pairs = {pair: value for _, _, pairs, _ in results for pair, value in pairs.items()}
    shared = dict(zip(names, (shared for _, shared, *_ in results), strict=True))
    return Links(names, pairs, results[0][-1], shared, installed_gpus())


def lines(links: Links) -> list[str]:
    """What was measured, a line for each fact."""
    k, hosts = len(links.hosts), dict.fromkeys(links.hosts)
    facts = [f"{counted(k, 'rank')} on {', '.join(hosts)}"]
    for pair, (latency, bandwidth) in links.pairs.items():
        facts.append(
            f"ranks {pair[0]} and {pair[1]} ({_where(links, pair)}): "
            f"{1e6 * latency:.0f} µs, {_rate(bandwidth)} in one direction"
        )
    for number, (size, seconds) in enumerate(links.sums):
        facts.append(
            f"allreduce of {size / 2**20:.0f} MiB: {1000 * seconds:.1f} ms, "
            f"{_rate(size / seconds)}; bus bandwidth {_rate(links.bus_bandwidth(number))}"
        )
    for host, size in links.shared_memory.items():
        room = "none" if size is None else f"{size / 2**20:,.0f} MiB"
        facts.append(f"shared memory of {host} ({SHARED}): {room}")
    return facts


def problems(links: Links) -> list[str]:
    """What is off, and what to do about it; [] if nothing is."""
    return [*_slow_pairs(links), *_slow_machine(links), *_little_memory(links)]


def _slow_pairs(links):
    """Pairs far behind the fastest of their kind; a rank all of whose pairs are, by its name."""
    for inside in (True, False):
        rates = {p: rate for p, (_, rate) in links.pairs.items() if links.inside(p) == inside}
        fastest = max(rates.values(), default=0)
        slow = {pair for pair, rate in rates.items() if rate < SLOW_PAIR * fastest}
        for name, ranks in _groups(links, inside).items():
            of_ranks = {pair for pair in rates if ranks & {*pair}}
            if of_ranks and of_ranks <= slow and of_ranks != set(rates):
                slow -= of_ranks
                rate = median(rates[pair] for pair in of_ranks)
                yield (
                    f"{name}: all its links carry about {_rate(rate)}, the fastest link between "
                    f"others {_rate(fastest)}. Look at its cable, port, or slot."
                )
        for pair in sorted(slow):
            yield (
                f"ranks {pair[0]} and {pair[1]} ({_where(links, pair)}): {_rate(rates[pair])}, "
                f"the fastest link of this kind {_rate(fastest)}. Look at what lies between them."
            )


def _groups(links, inside):
    """What one cable or slot serves: a rank of a host, or all ranks of one."""
    if inside:
        return {f"rank {rank}": {rank} for rank in range(len(links.hosts))}
    return {
        f"host {host}": {rank for rank, name in enumerate(links.hosts) if name == host}
        for host in dict.fromkeys(links.hosts)
    }


def _slow_machine(links):
    """A bus bandwidth far below the one that was published of the same GPUs."""
    known = [name for word, name in GPUS.items() if links.gpus and word in links.gpus[0]]
    if not known or len({*links.hosts}) > 1 or len(links.hosts) < 2:
        return
    machine, reached = PRESETS[known[0]], links.bus_bandwidth(-1)
    expected = machine.link_among(len(links.hosts)).bandwidth
    if reached < SLOW_MACHINE * expected:
        source = next(source for source in machine.sources if source.how != "data sheet")
        yield (
            f"bus bandwidth {_rate(reached)}: of {len(links.hosts)} {machine.name} it is "
            f"{_rate(expected)} ({source.how}: {source.where}). Read `nvidia-smi topo -m`, and "
            "NCCL's log with NCCL_DEBUG=INFO: which path does it take?"
        )


def _little_memory(links):
    for host, size in links.shared_memory.items():
        if size is None or size <= LITTLE:
            there = f"no {SHARED}" if size is None else f"{SHARED} has {size / 2**20:.0f} MiB"
            yield (
                f"host {host}: {there}. NCCL and the workers of a DataLoader exchange their data "
                f"there, and fail. In Docker: --shm-size=8g, or --ipc=host."
            )


def _where(links, pair):
    first, second = (links.hosts[rank] for rank in pair)
    return first if first == second else f"{first}, {second}"


def _rate(bandwidth):
    """Bytes a second in words."""
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6)):
        if bandwidth >= size:
            return f"{bandwidth / size:.3g} {unit}"
    return f"{bandwidth / 1e3:.3g} kB/s"


def main(devices=None, hosts=None) -> int:
    """Measure and print; returns 1 if something is off.

    devices: ranks on each host; None is all devices of this one, or one on each of ``hosts``.
    """
    if devices is None:
        devices = 1 if hosts else len(places(len(installed_gpus())))
    if devices * len(hosts or [None]) < 2:
        raise DeviceError("One rank has no link: give --devices 2, or --hosts and two names.")
    links = measure(devices, hosts)
    print(*lines(links), sep="\n")
    complaints = problems(links)
    print(*(complaints or ["Nothing is off."]), sep="\n")
    return bool(complaints)
