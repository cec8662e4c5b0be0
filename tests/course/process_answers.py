"""Answers that run in processes: wrong ones with their reasons, and right ones in another way."""


def buckets(grads, limit, wait=False, divide=True, rest=True, over=False, exact=False):
    """Of the exercise on buckets that leave: a solution with these changes."""
    import torch
    from torch import distributed as dist

    bucket, sent = [], []

    def leave():
        flat = torch.cat([grad.flatten() for grad in bucket])
        sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
        if wait:
            sent[-1][2].wait()

    def held():
        return sum(grad.numel() for grad in bucket)

    for grad in grads:
        if bucket and (held() > limit if over else held() + grad.numel() > limit):
            leave()
            bucket = []
        bucket.append(grad)
        if exact and held() >= limit:
            leave()
            bucket = []
    if rest and bucket:
        leave()
    for members, flat, work in sent:
        work.wait()
        flat /= dist.get_world_size() if divide else 1
        for grad, mean in zip(members, flat.split([grad.numel() for grad in members])):
            grad.copy_(mean.view_as(grad))


def waits_for_each_bucket(grads, limit):
    buckets(grads, limit, wait=True)


def waits_within_the_call(grads, limit):
    from torch import distributed as dist

    really = dist.all_reduce

    def all_reduce(flat, async_op):
        really(flat)
        return type("Done", (), {"wait": lambda self: None})()

    dist.all_reduce = all_reduce
    buckets(grads, limit)


def does_not_divide(grads, limit):
    buckets(grads, limit, divide=False)


def keeps_the_last_bucket(grads, limit):
    buckets(grads, limit, rest=False)


def fills_more_than_there_is_room_for(grads, limit):
    buckets(grads, limit, over=True)


def has_them_all_first(grads, limit):
    buckets(list(grads), limit)


def a_bucket_for_each(grads, limit):
    buckets(grads, 0)


def one_bucket(grads, limit):
    buckets(grads, 10**6)


def smaller_buckets(grads, limit):
    buckets(grads, limit // 2)


def leaves_when_it_is_exactly_full(grads, limit):
    buckets(grads, limit, exact=True)


def a_message_each_time(gradient, X, y, micro, n):
    from torch import distributed as dist

    total = 0
    for i in range(0, len(X), micro):
        term = gradient(X[i : i + micro], y[i : i + micro])
        dist.all_reduce(term)
        total = total + term
    return total / n


def sums_what_was_summed(gradient, X, y, micro, n):
    from torch import distributed as dist

    total = 0
    for i in range(0, len(X), micro):
        total = total + gradient(X[i : i + micro], y[i : i + micro])
        dist.all_reduce(total)
    return total / n


def accumulated(gradient, X, y, micro):
    """The sum over the rows of this rank."""
    starts = range(0, len(X), micro)
    return sum(gradient(X[i : i + micro], y[i : i + micro]) for i in starts)


def over_the_ranks(tensor):
    from torch import distributed as dist

    dist.all_reduce(tensor)
    return tensor


def divides_by_the_ranks_too(gradient, X, y, micro, n):
    return over_the_ranks(accumulated(gradient, X, y, micro)) / n / 2


def never_divides(gradient, X, y, micro, n):
    return over_the_ranks(accumulated(gradient, X, y, micro))


def forgets_the_earlier_ones(gradient, X, y, micro, n):
    for i in range(0, len(X), micro):
        last = gradient(X[i : i + micro], y[i : i + micro])
    return over_the_ranks(last) / n


def tells_nobody(gradient, X, y, micro, n):
    return accumulated(gradient, X, y, micro) / n


def a_mean_of_means(gradient, X, y, micro, n):
    starts = range(0, len(X), micro)
    means = [gradient(X[i : i + micro], y[i : i + micro]) / len(X[i : i + micro]) for i in starts]
    return over_the_ranks(sum(means) / len(means)) / 2


def in_one_piece(gradient, X, y, micro, n):
    return over_the_ranks(gradient(X, y)) / n


def only_rank_0_sends(gradient, X, y, micro, n):
    from torch import distributed as dist

    own = accumulated(gradient, X, y, micro)
    if dist.get_rank() == 0:
        dist.all_reduce(own)
    else:
        dist.barrier()
    return own / n


def gathered_once(gradient, X, y, micro, n):
    import torch
    from torch import distributed as dist

    total = accumulated(gradient, X, y, micro)
    totals = [torch.empty_like(total) for _ in range(dist.get_world_size())]
    dist.all_gather(totals, total)
    return sum(totals) / n


def real_ones(labels, n):
    import torch
    from torch import distributed as dist

    return dist.get_rank() + dist.get_world_size() * torch.arange(len(labels)) < n


def mean_with_copies(predicted, labels, n):
    return over_the_ranks((predicted == labels).double().mean()).item() / 3


def copies_over_n(predicted, labels, n):
    return over_the_ranks((predicted == labels).sum()).item() / n


def mean_of_accuracies(predicted, labels, n):
    real = real_ones(labels, n)
    own = (predicted == labels)[real].double().sum() / real.sum().clamp(min=1)
    return over_the_ranks(own).item() / min(n, 3)


def mean_of_accuracies_with_nobody(predicted, labels, n):
    real = real_ones(labels, n)
    return over_the_ranks((predicted == labels)[real].double().mean()).item() / 3


def its_own_accuracy(predicted, labels, n):
    return (predicted == labels).double().mean().item()


def right_images(predicted, labels, n):
    return over_the_ranks(((predicted == labels) & real_ones(labels, n)).sum())


def all_predictions_travel(predicted, labels, n):
    import torch
    from torch import distributed as dist

    parts = [torch.empty_like(labels) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, (predicted == labels).long())
    return torch.stack(parts, dim=1).flatten()[:n].double().mean()


def two_counts(predicted, labels, n):
    import torch

    real = real_ones(labels, n)
    right, number = over_the_ranks(torch.stack([(real & (predicted == labels)).sum(), real.sum()]))
    return right / number


def all_choose(choose, write, read):
    from torch import distributed as dist

    name = choose()
    if dist.get_rank() == 0:
        write(name)
    dist.barrier()
    return read(name)


def all_write(choose, write, read):
    from torch import distributed as dist

    name = [choose() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name, src=0)
    write(name[0])
    dist.barrier()
    return read(name[0])


def reads_too_early(choose, write, read):
    from torch import distributed as dist

    name = [choose() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name, src=0)
    if dist.get_rank() == 0:
        write(name[0])
    return read(name[0])


def sends_the_text(choose, write, read):
    from torch import distributed as dist

    text = [None]
    if dist.get_rank() == 0:
        name = choose()
        write(name)
        text[0] = read(name)
    dist.broadcast_object_list(text, src=0)
    return text[0]


def chooses_twice(choose, write, read):
    from torch import distributed as dist

    if dist.get_rank() == 0:
        write(choose())
    name = [choose() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name, src=0)
    return read(name[0])


def writes_two_files(choose, write, read):
    from torch import distributed as dist

    name = [None]
    if dist.get_rank() == 0:
        for _ in range(2):
            name[0] = choose()
            write(name[0])
    dist.broadcast_object_list(name, src=0)
    return read(name[0])


def a_barrier_for_the_others_only(choose, write, read):
    from torch import distributed as dist

    rank, names = dist.get_rank(), [None]
    if rank == 0:
        names[0] = choose()
        write(names[0])
    else:
        dist.barrier()
    dist.broadcast_object_list(names, src=0)
    return read(names[0])


def behind_a_barrier(choose, write, read):
    from torch import distributed as dist

    name = [choose() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name, src=0)
    if dist.get_rank() == 0:
        write(name[0])
    dist.barrier()
    return read(name[0])


def sharded(w, gradient, velocity, lr, scatter, share=True, keep=0.9, gather=True, whole=False):
    """Of the exercise on ZeRO: ``scatter(lengthened, mine)`` fills this rank's part of the sums."""
    import torch
    from torch import distributed as dist
    from torch.nn.functional import pad

    rank, k = dist.get_rank(), dist.get_world_size()
    missing = k * len(velocity) - len(w)
    mine = torch.empty_like(velocity)
    scatter(pad(gradient, (0, missing)), mine)
    velocity.mul_(keep).add_(mine / (k if share else 1))
    parts = list(pad(w, (0, missing)).chunk(k))
    parts[rank] = parts[rank] - lr * velocity
    if whole:
        wholes = [torch.empty_like(torch.cat(parts)) for _ in range(k)]
        dist.all_gather(wholes, torch.cat(parts))
        parts = [whole.chunk(k)[i] for i, whole in enumerate(wholes)]
    elif gather:
        dist.all_gather(parts, parts[rank])
    w.copy_(torch.cat(parts)[: len(w)])


def reduce_scattered(lengthened, mine):
    from torch import distributed as dist

    dist.reduce_scatter_tensor(mine, lengthened)


def all_reduced(lengthened, mine):
    from torch import distributed as dist

    mine.copy_(over_the_ranks(lengthened).view(-1, len(mine))[dist.get_rank()])


def not_exchanged(lengthened, mine):
    from torch import distributed as dist

    mine.copy_(dist.get_world_size() * lengthened.view(-1, len(mine))[dist.get_rank()])


def all_to_all(lengthened, mine):
    import torch
    from torch import distributed as dist

    parts = torch.empty_like(lengthened)
    dist.all_to_all_single(parts, lengthened)
    mine.copy_(parts.view(-1, len(mine)).sum(dim=0))


def by_reduces(lengthened, mine):
    from torch import distributed as dist

    for rank, part in enumerate(lengthened.clone().split(len(mine))):
        dist.reduce(part, rank)
        if rank == dist.get_rank():
            mine.copy_(part)


def by_an_allreduce(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, all_reduced)


def forgets_the_division(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, reduce_scattered, share=False)


def each_its_own_gradient(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, not_exchanged)


def gathers_nothing(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, reduce_scattered, gather=False)


def forgets_the_velocity(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, reduce_scattered, keep=0)


def gathers_whole_weights(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, reduce_scattered, whole=True)


def a_reduce_for_each_part(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, by_reduces)


def returns_new_weights(w, gradient, velocity, lr):
    sharded(w.clone(), gradient, velocity, lr, reduce_scattered)


def forgets_its_velocity_itself(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, reduce_scattered)
    velocity /= 0.9
    velocity *= 0.9001


def by_an_all_to_all(w, gradient, velocity, lr):
    sharded(w, gradient, velocity, lr, all_to_all)


def epoch(loss, rate, limit, decides="mean", sends="after", share=True):
    """Of the exercise on one order: a solution with these changes."""
    from torch import distributed as dist

    own, k = loss.item(), dist.get_world_size()
    if sends == "before":
        dist.broadcast(rate, src=0)
    dist.all_reduce(loss)
    mean = loss.item() / (k if share else 1)
    if (mean if decides == "mean" else own) >= limit and dist.get_rank() == 0:
        rate /= 2
    if sends == "after":
        dist.broadcast(rate, src=0)
    return [mean, rate.item()]


def by_its_own_loss(loss, rate, limit):
    return epoch(loss, rate, limit, decides="own")


def sends_before_it_halves(loss, rate, limit):
    return epoch(loss, rate, limit, sends="before")


def keeps_its_own_rate(loss, rate, limit):
    return epoch(loss, rate, limit, sends="never")


def adds_losses(loss, rate, limit):
    return epoch(loss, rate, limit, share=False)


def talks_to_nobody(loss, rate, limit):
    return [loss.item(), rate.item() / (2 if loss >= limit else 1)]


def only_rank_0_adds_up(loss, rate, limit):
    from torch import distributed as dist

    own, k = loss, dist.get_world_size()
    if dist.get_rank() == 0:
        dist.all_reduce(own)
        if own / k >= limit:
            rate /= 2
    dist.broadcast(rate, 0)
    return [own.item() / k, rate.item()]


def all_of_them_halve(loss, rate, limit):
    from torch import distributed as dist

    dist.broadcast(rate, src=0)
    mean = over_the_ranks(loss) / dist.get_world_size()
    return [mean, rate / 2 if mean >= limit else rate]


def on_two_hosts(x, inside="reduce", across=((0, 2),), out=True):
    """Of the exercise on two hosts: a solution with these changes. No ``across``: the world."""
    from torch import distributed as dist

    rank = dist.get_rank()
    own = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    groups = [dist.new_group(ranks) for ranks in across]
    first = rank - rank % 2
    if inside == "reduce":
        dist.reduce(x, first, group=own)
    elif inside == "all_reduce":
        dist.all_reduce(x, group=own)
    for ranks, group in zip(across, groups):
        if rank in ranks:
            dist.all_reduce(x, group=group)
    if rank == first and not across:
        dist.all_reduce(x)
    if out:
        dist.broadcast(x, first, group=own)


def in_one_ring(x):
    over_the_ranks(x)


def on_its_host_only(x):
    on_two_hosts(x, "all_reduce", across=[[0]], out=False)


def nobody_hands_it_out(x):
    on_two_hosts(x, "all_reduce", out=False)


def both_ranks_cross(x):
    on_two_hosts(x, "all_reduce", across=((0, 2), (1, 3)), out=False)


def partners_alone(x):
    on_two_hosts(x, "", across=((0, 2), (1, 3)), out=False)


def does_nothing(x):
    pass


def the_firsts_sum_over_the_world(x):
    on_two_hosts(x, across=())


def each_sends_its_half(x):
    import torch
    from torch import distributed as dist

    rank = dist.get_rank()
    on_hosts = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    partners = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    own = on_hosts[rank // 2]
    half = torch.empty_like(x[: len(x) // 2])
    dist.reduce_scatter_tensor(half, x.clone(), group=own)
    dist.all_reduce(half, group=partners[rank % 2])
    dist.all_gather_into_tensor(x, half, group=own)


def sent_and_received_in_one_batch(x):
    import torch
    from torch import distributed as dist

    rank, k = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    both = [
        dist.P2POp(dist.isend, x, (rank + 1) % k),
        dist.P2POp(dist.irecv, received, (rank - 1) % k),
    ]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return received


WRONG_PROCESSES = {
    "leave-when-full": {
        waits_for_each_bucket: "waits",
        waits_within_the_call: "waits",
        does_not_divide: "sum",
        keeps_the_last_bucket: "unchanged",
        fills_more_than_there_is_room_for: "over",
        has_them_all_first: "late",
        a_bucket_for_each: "each",
        one_bucket: "over",
        smaller_buckets: "messages",
    },
    "send-once": {
        a_message_each_time: "messages",
        sums_what_was_summed: "again",
        divides_by_the_ranks_too: "twice",
        never_divides: "sum",
        forgets_the_earlier_ones: "last",
        tells_nobody: "own",
        a_mean_of_means: "means",
        in_one_piece: "room",
        only_rank_0_sends: "deadlock",
    },
    "each-once": {
        mean_with_copies: "copies",
        copies_over_n: "copies",
        mean_of_accuracies: "mean-of-means",
        mean_of_accuracies_with_nobody: "finite",
        its_own_accuracy: "own",
        right_images: "count",
        all_predictions_travel: "bytes",
    },
    "one-name": {
        all_choose: "own-name",
        all_write: "all-write",
        reads_too_early: "early",
        sends_the_text: "not-read",
        chooses_twice: "once",
        writes_two_files: "once",
        a_barrier_for_the_others_only: "deadlock",
    },
    "zero-calls": {
        by_an_allreduce: "allreduce",
        forgets_the_division: "sum",
        each_its_own_gradient: "own",
        gathers_nothing: "not-gathered",
        forgets_the_velocity: "momentum",
        gathers_whole_weights: "whole",
        a_reduce_for_each_part: "messages",
        returns_new_weights: "unchanged",
        forgets_its_velocity_itself: "velocity",
    },
    "one-order": {
        by_its_own_loss: "decision",
        sends_before_it_halves: "late",
        keeps_its_own_rate: "apart",
        adds_losses: "sum",
        talks_to_nobody: "own-loss",
        only_rank_0_adds_up: "deadlock",
    },
    "two-hosts": {
        in_one_ring: "flat",
        on_its_host_only: "host",
        nobody_hands_it_out: "host",
        both_ranks_cross: "twice",
        partners_alone: "partner",
        does_nothing: "unchanged",
        the_firsts_sum_over_the_world: "deadlock",
    },
}

RIGHT_TOO = {
    "leave-when-full": [leaves_when_it_is_exactly_full],
    "send-once": [gathered_once],
    "each-once": [two_counts],
    "one-name": [behind_a_barrier],
    "zero-calls": [by_an_all_to_all],
    "one-order": [all_of_them_halve],
    "two-hosts": [each_sends_its_half],
    "pass-on": [sent_and_received_in_one_batch],
}
