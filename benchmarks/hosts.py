"""Steps on several hosts, modelled and measured: ``python -m benchmarks.hosts``, as root, at rest.

Hosts are network namespaces of this machine, their links shaped. What runs is the page's own code,
chapters/clusters/many-machines.ipynb, and so is the model: a step without the links is measured,
in turn with the whole one, and the time on the link computed from its rate. Nothing is fitted.
"""

import sys
from collections.abc import Iterator
from statistics import median

from benchmarks.measure import installed
from d2lmgpu.course import chapters
from d2lmgpu.launch import launch
from d2lmgpu.machine.files import CHAPTERS
from d2lmgpu.process.cluster import box
from d2lmgpu.records import store

PAGE = CHAPTERS / "clusters" / "many-machines.ipynb"
CLUSTERS = [(2, 1), (4, 1), (2, 2)]  # hosts, and ranks on each
REPEATS, LIMIT = 9, 0.20


def steps(page) -> Iterator:
    """A row for each rate, cluster and way of exchanging."""
    for rate in page["RATES"]:
        box.rate(rate)
        for hosts, each in CLUSTERS:
            names = [f"n{i}" for i in range(1, hosts + 1)]
            ranks = launch(
                page["step_seconds"],
                hosts,
                page["WIDTH"],
                REPEATS,
                hosts=names,
                num_processes=each,
            )
            yield from page["compared"](ranks, hosts, each, rate, page["WIDTH"])


def servers(page) -> Iterator[dict]:
    """Push and pull through one server and through two, of two hosts with a worker each."""
    box.rate("100mbit")
    for number in (1, 2):
        ranks = launch(
            page["push_and_pull"],
            page["SIZE"],
            REPEATS,
            hosts=["n1", "n2"],
            num_processes=1,
            num_servers=number,
        )
        measured = median(seconds for taken, _ in ranks for seconds in taken)
        modelled = page["with_servers"](2, number, "100mbit")
        yield {"servers": number, "rate": "100mbit", "measured": measured, "modelled": modelled}


def main() -> int:
    """Measure, print and record everything; returns how many are more than 20 % off."""
    if lacking := box.missing():
        print("benchmarks.hosts: left out, for it needs", "; ".join(lacking))
        return 0
    page = chapters.load(PAGE)
    record = store.provenance("python -m benchmarks.hosts")
    record["data"] = f"random images, {page['bytes_sent']('plain', page['WIDTH']):,} B of gradients"
    box.up(4, "1gbit")
    try:
        record["met"] = launch(page["who_am_i"], hosts=["n1", "n2"], num_processes=2)
        record["rows"] = list(steps(page))
        record["servers"], record["sums"] = [], []
        if installed("mxnet"):
            record["servers"] = list(servers(page))
            sums = launch(page["push_and_pull"], 1000, 1, num_processes=2, num_servers=1)
            record["sums"] = [total for _, total in sums]
    finally:
        box.down()
    good = []
    for row in record["rows"] + record["servers"]:
        error = row["modelled"] / row["measured"] - 1
        good.append(abs(error) <= LIMIT)
        numbers = {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
        print(*numbers.values(), f"{error:+.0%}", "ok" if good[-1] else "TOO MUCH")
    print("Written to", store.write("records", "hosts", record))
    return good.count(False)


if __name__ == "__main__":
    sys.exit(main())
