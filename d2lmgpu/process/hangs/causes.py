"""Names why ranks wait without end: the first rule that applies, causes before effects.

A rule takes the ``State`` of each rank and returns a sentence, or None.
"""

from dataclasses import dataclass

from d2lmgpu.process.hangs.log import LIMIT
from d2lmgpu.process.hangs.words import (
    and_list,
    at,
    call_in_words,
    condition,
    end_in_words,
    ranks_in_words,
    updates_in_words,
    waiting_in_words,
)

# Of these every rank gives a tensor of the same shape.
ALIKE = {
    "all_reduce",
    "allreduce",
    "broadcast",
    "reduce",
    "all_gather_into_tensor",
    "allgather_base",
    "reduce_scatter_tensor",
    "reduce_scatter_base",
}


@dataclass(frozen=True)
class Hang:
    """``rule``: the name of that below which applies. ``cause``: a sentence. ``ranks``: a line of
    words for each."""

    rule: str
    cause: str
    ranks: list

    def __str__(self):
        return "\n".join([self.cause, *(f"  {line}" for line in self.ranks)])


def hang(states, folder="") -> Hang | None:
    """Why these ranks wait for each other; None if they do not, or nothing says why.

    folder: files in it are named from there on.
    """
    waiting = [state for state in states if state.waits]
    if not waiting or len(states) < 2 or any(state.ended == LIMIT for state in states):
        return None
    for rule in (raised, stuck, unlike, left, message, absent, groups):
        if sentence := rule(states, waiting, folder):
            ranks = [rank_in_words(state, folder) for state in states]
            return Hang(rule.__name__, sentence, ranks)
    return None


def raised(states, waiting, folder) -> str | None:
    """A rank has raised for a reason of its own, and the others wait for it."""
    failed = [state for state in states if state.raised]
    if not failed:
        return None
    first = min(failed, key=lambda state: state.head["at"])
    return (
        f"Rank {first.rank} raised {first.head['text']}{_in(first)}{at(first.place, folder)}; "
        f"{_waiters(waiting, folder)}."
    )


def _in(state):
    return f" in its update {state.updates + 1}" if state.updates else ""


def stuck(states, waiting, folder) -> str | None:
    """A rank waits for a lock that nobody can release, and the others wait for it."""
    blocked = [state for state in states if state.stuck]
    if not blocked:
        return None
    sentence = and_list(f"rank {state.rank} {_stuck_in_words(state, folder)}" for state in blocked)
    return f"{_upper(sentence)}; {_waiters(waiting, folder)}."


def _stuck_in_words(state, folder):
    where = at(state.place, folder, code=True) + _during(state)
    if state.stuck == "worker":
        return (
            f"waits in next(loader){where} for a worker of its loader that waits for a lock, which "
            "no thread of that worker can release"
        )
    return f"waits for a lock, a queue or an event{where}, and no other thread of it can end that"


def unlike(states, waiting, folder) -> str | None:
    """The ranks have called different collectives at one number, by which they are matched."""
    groups = {call.group for state in states for call in state.calls if call.number}
    mismatches = []
    for group in groups:
        calls_by_rank = {
            state.rank: {
                call.number: call for call in state.calls if call.number and call.group == group
            }
            for state in states
        }
        calls_by_rank = {rank: calls for rank, calls in calls_by_rank.items() if calls}
        for number in sorted({number for calls in calls_by_rank.values() for number in calls}):
            calls = {
                rank: calls[number] for rank, calls in calls_by_rank.items() if number in calls
            }
            if len({_form(call) for call in calls.values()}) > 1:
                mismatches.append((number, calls))
                break
    if not mismatches:
        return None
    number, calls = min(mismatches, key=lambda entry: entry[0])
    forms = {}
    for rank, call in calls.items():
        forms.setdefault(_form(call), []).append(rank)
    parts = sorted(forms.values(), key=lambda ranks: (len(ranks), ranks))
    few, many = calls[parts[0][0]], calls[parts[-1][0]]
    forms_in_words = and_list(
        f"{call_in_words(calls[ranks[0]])} on {ranks_in_words(ranks)}"
        f"{at(calls[ranks[0]].place, folder)}"
        for ranks in parts
    )
    if few.kind == many.kind and few.place == many.place:
        return f"Collective {number} has another shape on each side: {forms_in_words}."
    under = [condition(call.places) for call in (few, many)]
    if len(parts) == 2 and (under[0] is None) != (under[1] is None):
        only = 0 if under[0] else 1
        ranks, call = (parts[0], few) if only == 0 else (parts[-1], many)
        return (
            f"Only {ranks_in_words(ranks)} called {call.name}{at(call.place, folder)}, under "
            f"{under[only]}; collectives are matched by their number, and number {number} "
            f"is {forms_in_words}."
        )
    if few.backward != many.backward:
        done, within = (many, few) if few.backward else (few, many)
        gone, rest = (
            [rank for rank in calls if calls[rank].backward == other.backward]
            for other in (done, within)
        )
        return (
            f"{_upper(ranks_in_words(gone))} left the loop after {updates_in_words(done)} and "
            f"came to {call_in_words(done)}{at(done.place, folder)}, {ranks_in_words(rest)} "
            f"to loss.backward() of update {within.updates + 1}"
            f"{at(within.place, folder)}: these wait for each other."
        )
    order = "The ranks call their collectives in another order"
    return f"{order}: number {number} is {forms_in_words}."


def left(states, waiting, folder) -> str | None:
    """A rank has ended, without an error of its own, while others wait."""
    gone = [state for state in states if state.ended and state.ended != "raised"]
    if not gone:
        return None
    ends = and_list(f"rank {state.rank} {end_in_words(state)}" for state in gone)
    return f"{_upper(ends)}, {_waiters(waiting, folder)}."


def message(states, waiting, folder) -> str | None:
    """A rank waits for a message of one that waits for something else, or to send it one."""
    for state in waiting:
        call = state.current
        if call is not None and call.peer is not None and not state.ended:
            other = "another rank" if call.peer < 0 else f"rank {call.peer}"
            peer = next((o for o in waiting if o.rank == call.peer and o is not state), None)
            rest = f"; {_waiter(peer, folder)}" if peer else ""
            deed = "a message from" if "recv" in call.name else "a message to be taken by"
            return (
                f"Rank {state.rank} waits for {deed} {other}"
                f"{at(state.place, folder)}{_during(state)}{rest}."
            )
    return None


def absent(states, waiting, folder) -> str | None:
    """A rank waits in an earlier place than the others, which wait for it: none can go on."""
    if len(waiting) < len(states) or len({_waited(state) for state in states}) == 1:
        return None
    most = max(state.updates for state in states)
    behind = [state for state in states if state.updates < most and state.backward]
    done = [state for state in states if state not in behind and not state.backward]
    if behind and done:
        return f"{_upper(_waiters(done, folder, _after))}, {_waiters(behind, folder)}."
    if any(state.current is None or state.current.number is None for state in states):
        return f"{_upper(_waiters(states, folder))}."
    return None


def groups(states, waiting, folder) -> str | None:
    """Each waits in another group: these are used in another order."""
    calls = {state.rank: state.current for state in states if state in waiting}
    if len(calls) < len(states) or not all(calls.values()):
        return None
    if len({call.group for call in calls.values()}) < 2:
        return None
    return f"The ranks use their groups in another order: {_waiters(states, folder)}."


def _form(call):
    """What has to be the same of each rank's collective of one number."""
    shapes = tuple(map(tuple, call.shapes)) if call.kind in ALIKE else ()
    return call.kind, call.public, call.backward, shapes


def _waited(state):
    """Where it waits, but for the place."""
    call = state.current
    return state.backward, state.beat.get("public"), call and (call.group, call.number, call.kind)


def _waiters(waiting, folder, more=lambda state: ""):
    return and_list(f"{_waiter(state, folder)}{more(state)}" for state in waiting)


def _after(state):
    return f" after {updates_in_words(state)}" if state.updates else ""


def _waiter(state, folder):
    verb = "waited" if state.ended else "waits"
    where = f"{_during(state)}{at(state.place, folder)}"
    return f"rank {state.rank} {verb} in {waiting_in_words(state)}{where}"


def _during(state):
    """The update in which it is, or after how many, where updates are made."""
    if state.backward and state.updates:
        return f" of its update {state.updates + 1}"
    return f" after {updates_in_words(state)}" if state.updates else ""


def rank_in_words(state, folder) -> str:
    """What a rank does, in a line."""
    called, current = [call for call in state.calls if call.number], state.current
    parts = [updates_in_words(state)]
    if called:
        last, waits = called[-1], state.waits and not state.ended and called[-1] is current
        parts.append(
            f"collective {last.number}: {call_in_words(last)}"
            f"{'' if waits else at(last.place, folder)}"
        )
    if state.lost:
        parts.append(f"waited when its peer went away{at(state.place, folder, code=True)}")
    elif state.ended:
        parts.append(end_in_words(state) + at(state.head.get("place"), folder, code=True))
        if state.ended == "killed" and state.place:
            parts.append(f"last seen{at(state.place, folder, code=True)}")
    elif state.waits:
        same = called and called[-1] is current and not state.backward
        what = "" if same else f" in {waiting_in_words(state)}"
        parts.append(f"waits{what}{at(state.place, folder, code=True)}")
    else:
        parts.append(f"{IS[state.beat.get('doing', 'own')]}{at(state.place, folder, code=True)}")
    return f"rank {state.rank}: " + ", ".join(parts)


IS = {"loader": "is in next(loader)", "lock": "waits for a lock or a queue", "own": "was last seen"}


def _upper(text):
    return text[:1].upper() + text[1:]
