"""Two allreduces side by side, as they go on: in a notebook and in a built page alike.

All that moves comes from the plans that `collectives.execution` runs, round by round; the script
beside this file only says where a message is at a moment. Without scripts the words show.
"""

from d2lmgpu.collectives.schedules import Schedule
from d2lmgpu.figures.checks import is_named, need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.machine.checks import is_real


class Race(Moving):
    """Schedules of which the reader lets two run at once, on a clock that both share.

    Parameters
    ----------
    sizes : dict
        Text of a gradient's size -> {algorithm: schedule}, for each number of devices one such
        dictionary in a list. A schedule's elements have 4 bytes.
    seconds : callable
        Of a number of bytes: how long a round takes in which so many pass the busiest port.
    about : str
        What the clock stands for, as text.
    start : dict
        What is chosen at first: "size", "devices", and "first" and "second", the algorithms.

    Raises
    ------
    FigureError
        For anything else.
    """

    def __init__(self, sizes: dict, seconds, about: str, start: dict):
        need(
            is_named(sizes, _are_plans) and sizes,
            "sizes",
            sizes,
            "{text: [{algorithm: Schedule}, …]}",
        )
        need(callable(seconds), "seconds", seconds, "a function of the bytes of a round")
        need(isinstance(about, str), "about", about, "a text")
        self.start = _start(sizes, start)
        data = {
            "sizes": {
                text: {
                    _devices(plans): {name: _as_data(plan, seconds) for name, plan in plans.items()}
                    for plans in of
                }
                for text, of in sizes.items()
            },
            "start": self.start,
        }
        words = [
            f"{name}: {plan['seconds'][-1] * 1000:.3g} ms in {len(plan['rounds'])} rounds"
            for name, plan in data["sizes"][start["size"]][start["devices"]].items()
        ]
        words = f"{start['devices']} devices, {start['size']}: {'; '.join(words)}."
        super().__init__("race", data, words, about)


def _are_plans(of) -> bool:
    return isinstance(of, list) and all(
        isinstance(plans, dict) and plans and all(isinstance(p, Schedule) for p in plans.values())
        for plans in of
    )


def _devices(plans) -> int:
    return next(iter(plans.values())).num_devices


def _start(sizes, start) -> dict:
    need(isinstance(start, dict), "start", start, "{size, devices, first, second}")
    need.choice("start['size']", start.get("size"), tuple(sizes))
    by_devices = {_devices(plans): plans for plans in sizes[start["size"]]}
    k = start.get("devices")
    need(k in list(by_devices), "start['devices']", k, f"one of {', '.join(map(str, by_devices))}")
    for place in ("first", "second"):
        need.choice(f"start[{place!r}]", start.get(place), tuple(by_devices[k]))
    return start


def _as_data(plan: Schedule, seconds) -> dict:
    """A schedule as the script reads it: when each round ends, and its messages.

    A message is [source, target, first part, part after the last, whether it is added, bytes]. A
    gradient is drawn in as many parts as there are devices.
    """
    ends, now = [0.0], 0.0
    for busiest in plan.busiest_port():
        need(is_real(seconds(busiest), 0), "seconds", seconds(busiest), "a time from 0 up")
        now += seconds(busiest)
        ends.append(now)
    k = plan.num_devices
    rounds = [
        [
            [
                s.source,
                s.target,
                *(round(edge * k / plan.size) for edge in (s.start, s.stop)),
                int(s.add),
                4 * len(s),
            ]
            for s in sends
        ]
        for sends in plan.rounds
    ]
    return {"seconds": ends, "rounds": rounds, "nodes": plan.num_nodes}
