"""Four pictures of ranks in lanes, each drawn from what was handed out, sent or told.

Three of them are given what a page has run: the sampler's places, the messages of DDP, the numbers
that torchrun tells. The fourth, a step of ``nn.DataParallel``, is a plan of its own; the tests
compare its order with PyTorch's and its bytes with a formula.
"""

from d2lmgpu.figures.checks import is_named, is_series, need
from d2lmgpu.figures.style import number
from d2lmgpu.figures.swimlanes import Cell, Panel, Row, Swimlanes
from d2lmgpu.machine.checks import is_whole

MOST = 4  # lanes whose words can still be read on a phone


def sampler_places(handed_out) -> Swimlanes:
    """Who gets which place of the common order, and which examples are there a second time.

    Parameters
    ----------
    handed_out : list
        For each rank the batches that it takes, each a list of (example, whether it counts).

    Returns
    -------
    Swimlanes
        A row for each example of a rank.

    Raises
    ------
    FigureError
        For other than 2 to 4 ranks, and for ranks without equally many batches.
    """
    allowed = "for each of 2 to 4 ranks equally many batches of (example, whether it counts)"
    is_rank = lambda batches: is_series(batches, lambda batch: is_series(batch, _is_example))  # noqa: E731
    need(is_series(handed_out, is_rank), "handed_out", handed_out, allowed)
    sizes = {tuple(map(len, batches)) for batches in handed_out}
    good = 2 <= len(handed_out) <= MOST and len(sizes) == 1
    need(good, "handed_out", handed_out, allowed)
    ranks, (sizes,) = len(handed_out), sizes
    rows, places = [], 0
    for step, size in enumerate(sizes):
        for i in range(size):
            taken = [batches[step][i] for batches in handed_out]
            title = f"step {step}, places {places} to {places + ranks - 1}"
            takers = ", ".join(
                f"rank {rank} takes example {example}{'' if counts else ', a copy'}"
                for rank, (example, counts) in enumerate(taken)
            )
            cells = tuple(
                Cell(str(example) if counts else f"{example}, a copy", is_copy=not counts)
                for example, counts in taken
            )
            rows.append(Row(title, f"{title[0].upper()}{title[1:]}: {takers}.", cells))
            places += ranks
    counted = sum(counts for batches in handed_out for batch in batches for _, counts in batch)
    return Swimlanes(
        f"{counted} examples in an order that all {ranks} ranks know, and nobody has one yet.",
        "The number in a box is an example. A dashed box is a copy of one that was handed out "
        "before; it does not count.",
        Panel(f"{counted} examples on {ranks} ranks", _ranks(ranks), tuple(rows)),
    )


def _is_example(pair) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and is_whole(pair[0], 0)


def _ranks(k: int) -> tuple[str, ...]:
    return tuple(f"rank {rank}" for rank in range(k))


def micro_batches(logs: dict) -> Swimlanes:
    """After which micro-batches the ranks exchange, in several ways beside each other.

    Parameters
    ----------
    logs : dict
        {way: log of each rank}. A log is a list with "forward" for each forward pass and, as a
        whole number, the bytes of each message.

    Returns
    -------
    Swimlanes
        A panel for each way, a row for each micro-batch.

    Raises
    ------
    FigureError
        For logs of another kind, of ranks that do not send alike, and of ways with other numbers
        of micro-batches.
    """
    allowed = 'for each way the equal logs of 2 to 4 ranks, lists of "forward" and bytes, as many '
    allowed += "micro-batches in each"
    need(is_named(logs, _is_ways_log) and len(logs) > 0, "logs", logs, allowed)
    good = len({log[0].count("forward") for log in logs.values()}) == 1
    need(good, "logs", logs, allowed)
    return Swimlanes(
        "All ranks have the same weights, and no gradient yet.",
        "A box is the forward and the backward pass of one micro-batch on one rank. A bar across "
        "all ranks is an exchange of their gradients.",
        *(_exchanges(name, log[0], len(log)) for name, log in logs.items()),
    )


def _is_ways_log(ranks) -> bool:
    def is_event(event):
        return event == "forward" if isinstance(event, str) else is_whole(event, 1)

    if not is_series(ranks, lambda log: is_series(log, is_event)):
        return False
    alike = all(log == ranks[0] for log in ranks)
    return alike and 2 <= len(ranks) <= MOST and ranks[0][0] == "forward"


def _exchanges(name: str, log, ranks: int) -> Panel:
    sent = []  # after each forward pass, its messages
    for event in log:
        if event == "forward":
            sent.append([])
        else:
            sent[-1].append(event)
    rows = []
    for step, messages in enumerate(sent, start=1):
        cells = tuple(Cell("forward, backward") for _ in range(ranks))
        title, words = f"micro-batch {step}", "Each rank adds a gradient to its own sum."
        if messages:
            several = f"{len(messages)} messages" if len(messages) > 1 else "one message"
            words += f" All ranks average their sums: {several}, {sum(messages):,} bytes."
            meeting = f"allreduce, {sum(messages):,} bytes"
        else:
            words += " Nothing is sent."
            title, meeting = f"{title}: nothing is sent", ""
        rows.append(Row(title, f"Micro-batch {step}. {words}", cells, meeting=meeting))
    return Panel(name, _ranks(ranks), tuple(rows))


def processes(numbers) -> Swimlanes:
    """The numbers that each process is told, on several hosts.

    Parameters
    ----------
    numbers : list
        For each process (host, rank, local rank, world size), the host by its name.

    Returns
    -------
    Swimlanes
        A lane for each process, framed by its host; a row for each number, and one for the GPU.

    Raises
    ------
    FigureError
        For other than 2 to 8 processes, equally many on each host.
    """
    allowed = "2 to 8 of (host, rank, local rank, world size), equally many for each host"
    need(is_series(numbers, _is_process), "numbers", numbers, allowed)
    numbers = sorted(numbers, key=lambda process: process[1])
    hosts = list(dict.fromkeys(host for host, *_ in numbers))
    each, rest = divmod(len(numbers), len(hosts))
    together = [host for host, *_ in numbers] == [host for host in hosts for _ in range(each)]
    need(2 <= len(numbers) <= 8 and not rest and together, "numbers", numbers, allowed)

    def row(title, what, values):
        on_hosts = "; ".join(
            f"on {host} {', '.join(values[each * at : each * (at + 1)])}"
            for at, host in enumerate(hosts)
        )
        return Row(title, f"{what}: {on_hosts}.", tuple(map(Cell, values)))

    ranks, local, sizes = ([str(process[i]) for process in numbers] for i in (1, 2, 3))
    rows = (
        row("RANK", "The ranks", ranks),
        row("LOCAL_RANK", "The local ranks", local),
        row("WORLD_SIZE", "The world size", sizes),
        row("its GPU", "The GPUs", local),
    )
    panel = Panel(
        f"{len(numbers)} processes on {len(hosts)} hosts", ("",) * len(numbers), rows, tuple(hosts)
    )
    return Swimlanes(
        f"{each} processes were started on each of {len(hosts)} hosts.",
        "A frame is a host, a column in it a process. Processes of one colour have one local rank, "
        "and so the GPU of that number on their host.",
        panel,
    )


def _is_process(process) -> bool:
    if not isinstance(process, tuple) or len(process) != 4 or not isinstance(process[0], str):
        return False
    return all(is_whole(count, 0) for count in process[1:])


def data_parallel_beside_ddp(params: int, inputs: int, outputs: int, k: int = 4) -> Swimlanes:
    """A step of ``nn.DataParallel`` beside one of DDP: what leaves and reaches device 0, and when.

    Parameters
    ----------
    params, inputs, outputs : int
        Bytes of the parameters, of the whole batch and of all outputs.
    k : int
        The number of devices, 2 to 4.

    Returns
    -------
    Swimlanes
        Two panels with the same rows.

    Raises
    ------
    FigureError
        For other numbers.
    """
    need(is_whole(k, 2, MOST), "k", k, "2 to 4 devices")
    for name, size in (("params", params), ("inputs", inputs), ("outputs", outputs)):
        need(is_whole(size, 1), name, size, "a number of bytes from 1 up")
    devices = tuple(f"device {i}" for i in range(k))
    return Swimlanes(
        "The step before is over. DataParallel has the new parameters on device 0 alone, DDP on "
        "each device.",
        "A box is what a device computes, an arrow what one device sends to another. DDP's rows "
        "stand beside those of DataParallel that do the same.",
        Panel("DataParallel, one process", devices, data_parallel_step(params, inputs, outputs, k)),
        Panel("DDP, a process for each device", devices, _ddp_step(params, k)),
    )


def data_parallel_step(params: int, inputs: int, outputs: int, k: int) -> tuple[Row, ...]:
    """The rows of ``nn.DataParallel``, in its order; the sizes are in bytes."""

    def from_0(title, words, size):
        sends = tuple((0, device, size) for device in range(1, k))
        size = _in_words(sends)
        return Row(f"{title}, {size}", f"{words} {size} leave device 0.", sends=sends)

    def to_0(title, words, size):
        sends = tuple((device, 0, size) for device in range(1, k))
        size = _in_words(sends)
        return Row(f"{title}, {size}", f"{words} {size} reach device 0.", sends=sends)

    alone = (None,) * (k - 1)
    return (
        from_0("scatter: shards", "Each device gets its shard.", inputs // k),
        from_0("replicate: parameters", "Each device gets a copy.", params),
        _all_compute(k, "parallel_apply", "A thread for each device computes outputs.", "forward"),
        to_0("gather: outputs", "Device 0 collects the outputs.", outputs // k),
        Row("the loss, on device 0", "Device 0 computes the loss alone.", (Cell("loss"), *alone)),
        from_0("gradients of the outputs", "Each device gets its part back.", outputs // k),
        _all_compute(k, "backward", "Each device computes gradients of its copy.", "backward"),
        to_0("gradients of all parameters", "Device 0 adds them up.", params),
        Row(
            "the update, on device 0",
            "Device 0 updates alone. The copies are thrown away.",
            (Cell("update"), *alone),
        ),
    )


def _ddp_step(params: int, k: int) -> tuple[Row, ...]:
    each = 2 * (k - 1) * params // k  # of a ring
    return (
        _all_compute(k, "each loads its shard", "Each process loads its own shard.", "load"),
        Row(
            "copies from the start: nothing is sent",
            "Nothing is sent: each has its copy, which was made once, at the start.",
        ),
        _all_compute(k, "forward", "Each process computes its own outputs.", "forward"),
        Row("outputs stay: nothing is sent", "Nothing is sent: outputs stay where they are."),
        _all_compute(k, "the loss of each shard", "Each computes the loss of its shard.", "loss"),
        Row(
            "so do their gradients: nothing is sent",
            "Nothing is sent: each has the gradients of its own outputs.",
        ),
        _all_compute(k, "backward", "Each computes gradients, from the last layer on.", "backward"),
        Row(
            "gradients, already during backward",
            f"All add up their gradients; in a ring each sends {_size(each)}.",
            meeting=f"allreduce, {_size(each)} from each",
        ),
        _all_compute(
            k, "each takes the same step", "Each updates, and the copies stay equal.", "update"
        ),
    )


def _all_compute(k: int, title: str, words: str, what: str) -> Row:
    return Row(title, words, (Cell(what),) * k)


def _in_words(sends) -> str:
    """How many messages of which size."""
    return f"{len(sends)} × {_size(sends[0][2])}"


def _size(num_bytes: int) -> str:
    unit, scale = next(
        (u, s) for u, s in (("MB", 1e6), ("kB", 1e3), ("bytes", 1)) if num_bytes >= s
    )
    return f"{number(num_bytes / scale)} {unit}"
