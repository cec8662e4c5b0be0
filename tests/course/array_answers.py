"""Wrong answers to the exercises in which arrays change, or devices send to each other.

As in ``exercise_answers.py``, each with the reason for which it has to be refused.
"""

import numpy as np


def the_same_list(params, k):
    return [params] * k


def one_copy_for_all(params, k):
    copies = [param.copy() for param in params]
    return [list(copies) for _ in range(k)]


def the_first_is_the_original(params, k):
    return [list(params)] + [[param.copy() for param in params] for _ in range(k - 1)]


def empty_copies(params, k):
    return [[np.zeros_like(param) for param in params] for _ in range(k)]


def all_on_device_0(device, params):
    for j, param in enumerate(params):
        if device.rank:
            device.send(param, 0)
            params[j][:] = device.receive(0)
        else:
            for rank in range(1, device.k):
                param += device.receive(rank)
            for rank in range(1, device.k):
                device.send(param, rank)


def everything_to_everybody(device, params):
    others = [rank for rank in range(device.k) if rank != device.rank]
    for param in params:
        for rank in others:
            device.send(param, rank)
    for rank in others:
        for param in params:
            param += device.receive(rank)


def owners_keep_it(device, params):
    for j, param in enumerate(params):
        if j % device.k != device.rank:
            device.send(param, j % device.k)
    for param in params[device.rank :: device.k]:
        for rank in range(device.k):
            if rank != device.rank:
                param += device.receive(rank)


def skips_the_idle_and_divides_by_devices(w, grads, shards, lr):
    for grad, (X, y) in zip(grads, shards, strict=True):
        grad[:] = X.T @ (X @ w - y)
    w -= lr * sum(grads) / len(shards)


def new_weights(w, grads, shards, lr):
    for grad, (X, y) in zip(grads, shards, strict=True):
        grad[:] = X.T @ (X @ w - y)
    w = w - lr * sum(grads) / sum(len(X) for X, y in shards)


def a_list_of_new_arrays(params, grads, lr, batch_size):
    for j, grad in enumerate(grads):
        params[j] = params[j] - lr * grad / batch_size


def without_the_batch(params, grads, lr, batch_size):
    for param, grad in zip(params, grads, strict=True):
        param -= lr * grad


def scales_the_gradients(params, grads, lr, batch_size):
    for param, grad in zip(params, grads, strict=True):
        grad *= lr / batch_size
        param -= grad


def whole_arrays_to_partners(device, data):
    distance = device.k // 2
    while distance:
        device.send(data, device.rank ^ distance)
        data += device.receive(device.rank ^ distance)
        distance //= 2


def half_of_the_way(device, data):
    distance = device.k // 2
    while distance:
        low, high = np.split(data, 2)
        partner = device.rank ^ distance
        data, give = (low, high) if device.rank < partner else (high, low)
        device.send(give, partner)
        data += device.receive(partner)
        distance //= 2


def a_ring(device, data):
    k, i = device.k, device.rank
    parts = np.split(data, k)
    for r in range(2 * k - 2):
        device.send(parts[(i - r) % k], (i + 1) % k)
        received = device.receive((i - 1) % k)
        parts[(i - r - 1) % k][:] = received + (parts[(i - r - 1) % k] if r < k - 1 else 0)


def waits_before_it_prepares(batches, device):
    losses = []
    for batch in batches:
        losses.append(float(device.step(batch)))
    return np.mean(losses)


def the_last_loss(batches, device):
    losses = [device.step(batch) for batch in batches]
    return losses[-1].item()


def each_step_twice(batches, device):
    losses = [(device.step(batch), device.step(batch))[0] for batch in batches]
    return sum(loss.item() for loss in losses) / len(batches)


def another_order_each_time(n, k, rank, epoch, seed):
    return np.random.default_rng().permutation(n)[rank::k]


def each_rank_for_itself(n, k, rank, epoch, seed):
    return np.random.default_rng([seed, epoch, rank]).permutation(n)[rank::k]


def without_the_rest_of_the_images(n, k, rank, epoch, seed):
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return order[: (n - 1) // k * k][rank::k]


def without_the_seed(n, k, rank, epoch, seed):
    return np.random.default_rng(epoch).permutation(n)[rank::k]


def sum_of_lengths(device, part, limit):
    length = device.all_gather(np.linalg.norm(part)).sum()
    return part * min(1, limit / length)


def gathers_everything(device, part, limit):
    length = np.linalg.norm(device.all_gather(part))
    return part * min(1, limit / length)


def every_device_alike(w, gradient, shards, lr):
    means = [gradient(w, X, y) / len(X) if len(X) else 0 * w for X, y in shards]
    w -= lr * sum(means) / len(means)


def sum_of_sums(w, gradient, shards, lr):
    w -= lr * sum(gradient(w, X, y) for X, y in shards)


def rebound_weights(w, gradient, shards, lr):
    w = w - lr * sum(gradient(w, X, y) for X, y in shards) / sum(len(X) for X, y in shards)


def each_by_its_own_loss(device, losses, limit):
    for step, loss in enumerate(losses):
        if loss < limit:
            return step


def the_worst_decides(device, losses, limit):
    for step, loss in enumerate(losses):
        if device.all_gather(loss).max() < limit:
            return step
    return len(losses)


def a_message_for_each(*grads):
    from torch import distributed as dist

    for grad in grads:
        dist.all_reduce(grad)
        grad /= dist.get_world_size()


def a_sum_in_one_message(*grads):
    import torch
    from torch import distributed as dist

    flat = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(flat)
    for grad, total in zip(grads, flat.split([grad.numel() for grad in grads])):
        grad.copy_(total.view_as(grad))


def not_copied_back(*grads):
    import torch
    from torch import distributed as dist

    dist.all_reduce(torch.cat([grad.flatten() for grad in grads]))


def passed_on_before_it_came(x):
    import torch
    from torch import distributed as dist

    rank, k = dist.get_rank(), dist.get_world_size()
    dist.isend(x, (rank + 1) % k).wait() if rank else dist.recv(torch.empty_like(x), k - 1)
    return x


def cut_off(x):
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def ties_away_from_zero(x):
    return ((x.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def eight_digits(x):
    return np.round(x, 8)


def looks_ahead(q, k, v, heads):
    parts = zip(*(np.split(t, heads, axis=1) for t in (q, k, v)), strict=True)
    outputs = [softmax(Q @ K.T / np.sqrt(Q.shape[1])) @ V for Q, K, V in parts]
    return np.concatenate(outputs, axis=1)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def causal(q, k, v, heads, scale, diagonal=1):
    outputs = []
    for Q, K, V in zip(*(np.split(t, heads, axis=1) for t in (q, k, v)), strict=True):
        scores = Q @ K.T / scale
        scores[np.triu_indices(len(Q), diagonal)] = -1e9
        outputs.append(softmax(scores) @ V)
    return np.concatenate(outputs, axis=1)


def scaled_by_the_whole_width(q, k, v, heads):
    return causal(q, k, v, heads, np.sqrt(q.shape[1]))


def not_itself(q, k, v, heads):
    return causal(q, k, v, heads, np.sqrt(q.shape[1] // heads), 0)


def one_head(q, k, v, heads):
    return causal(q, k, v, 1, np.sqrt(q.shape[1]))


def sum_over(data):
    from torch import distributed as dist

    dist.all_reduce(data)
    return data


def mlp_with(X, A, B, dY, f=sum_over, g=sum_over):
    H = (X @ A).relu()
    dH = dY @ B.T * (H > 0)
    return g(H @ B), f(dH @ A.T), X.T @ dH, H.T @ dY


def without_f(X, A, B, dY):
    return mlp_with(X, A, B, dY, f=lambda data: data)


def without_g(X, A, B, dY):
    return mlp_with(X, A, B, dY, g=lambda data: data)


def without_the_mask(X, A, B, dY):
    H = (X @ A).relu()
    dH = dY @ B.T
    return sum_over(H @ B), sum_over(dH @ A.T), X.T @ dH, H.T @ dY


def sums_the_hidden_gradients(X, A, B, dY):
    Y, dX, dA, dB = mlp_with(X, A, B, dY)
    sum_over(dA.clone())
    return Y, dX, dA, dB


def looked_up(scores, y, column):
    """Every rank adds what it finds there."""
    from torch import distributed as dist

    targets = scores.gather(1, column[:, None])[:, 0]
    dist.all_reduce(targets)
    return targets


def without_a_mask(scores, y):
    from torch import distributed as dist

    width = scores.shape[1]
    return looked_up(scores, y, (y - dist.get_rank() * width).clamp(0, width - 1))


def modulo_its_columns(scores, y):
    return looked_up(scores, y, y % scores.shape[1])


def negative_columns(scores, y):
    """Too large a column is left out; one below 0 counts from the end."""
    import torch
    from torch import distributed as dist

    width = scores.shape[1]
    column = y - dist.get_rank() * width
    is_there = (column >= -width) & (column < width)
    targets = torch.zeros(len(y), dtype=scores.dtype)
    targets[is_there] = scores[is_there, column[is_there]]
    dist.all_reduce(targets)
    return targets


def its_own_symbols(scores, y):
    import torch
    from torch import distributed as dist

    column = y - dist.get_rank() * scores.shape[1]
    is_mine = (column >= 0) & (column < scores.shape[1])
    return torch.where(is_mine, scores.gather(1, (column * is_mine)[:, None])[:, 0], 0)


def gathers_all_scores(scores, y):
    import torch
    from torch import distributed as dist

    parts = [torch.empty_like(scores) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, scores)
    return torch.cat(parts, dim=1).gather(1, y[:, None])[:, 0]


def rows_without_a_sum(X, W, b):
    return X @ W + b


def bias_of_a_part(X, W, b):
    from torch import distributed as dist

    return sum_over(X @ W) + b / dist.get_world_size()


def mean_of_the_gains(X, dY):
    from torch import distributed as dist

    return sum_over((X * dY).sum(0)) / dist.get_world_size()


def all_the_tokens_are_sent(X, dY):
    import torch
    from torch import distributed as dist

    both = torch.cat([X, dY], dim=1)
    gathered = [torch.empty_like(both) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, both)
    return sum((rows[:, :5] * rows[:, 5:]).sum(0) for rows in gathered)


def all_forward_first(rank, p, m):
    return [("F", i) for i in range(m)] + [("B", i) for i in range(m)]


def there_and_back(rank, p, m):
    return [(kind, i) for i in range(m) for kind in "FB"]


def one_too_far_ahead(rank, p, m):
    ahead = min(p - rank, m)
    order = [("F", i) for i in range(ahead)]
    for i in range(m):
        order += [("F", ahead + i)] * (ahead + i < m) + [("B", i)]
    return order


def backward_from_the_last(rank, p, m):
    return [("F", i) for i in range(m)] + [("B", m - 1 - i) for i in range(m)]


def two_stages(data, weights, share, late=0, wait=False):
    """Of the exercises on pipelines: 1F1B, with these changes."""
    import torch
    from torch import distributed as dist

    gradient, sent = torch.zeros_like(weights), []
    if dist.get_rank() == 0:
        for i in range(len(data) + 1):
            if i < len(data):
                sent.append((dist.isend(H := data[i] @ weights, 1), H))
                if wait:
                    sent[-1][0].wait()
            if i > 0:
                back = torch.zeros(data.shape[1], weights.shape[1], dtype=data.dtype)
                dist.recv(back, 1)
                gradient += data[i - 1 - late].T @ back
    else:
        for y in data:
            H = torch.zeros(len(y), len(weights), dtype=y.dtype)
            dist.recv(H, 0)
            error = share * (H @ weights - y)
            gradient += H.T @ error
            sent.append((dist.isend(back := torch.outer(error, weights), 0), back))
            if wait:
                sent[-1][0].wait()
    for work, _ in sent:
        work.wait()
    return gradient


def divided_twice(data, weights):
    return two_stages(data, weights, 2 / data.shape[0] / data.shape[:2].numel())


def not_divided(data, weights):
    return two_stages(data, weights, 2 / data.shape[1])


def of_another_micro_batch(data, weights):
    return two_stages(data, weights, 2 / data.shape[:2].numel(), late=1)


def waits_at_once(data, weights):
    return two_stages(data, weights, 2 / data.shape[:2].numel(), wait=True)


def the_other_part(cut, norm):
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for gradient in (cut, norm):
        dist.all_reduce(gradient, group=mesh.get_group("tp"))
        gradient /= 2


def replicas_added_up(cut, norm):
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for gradient in (cut, norm):
        dist.all_reduce(gradient, group=mesh.get_group("dp"))


def the_norm_over_everybody(cut, norm):
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    dist.all_reduce(cut, group=mesh.get_group("dp"))
    dist.all_reduce(norm)
    cut /= 2
    norm /= 2


def mean_of_two_blocks(output_1, total_1, output_2, total_2):
    return (output_1 + output_2) / 2, np.logaddexp(total_1, total_2)


def overflows(output_1, total_1, output_2, total_2):
    with np.errstate(all="ignore"):
        first, other = np.exp(total_1)[:, None], np.exp(total_2)[:, None]
        return (first * output_1 + other * output_2) / (first + other), np.log(first + other)[:, 0]


def weighted_by_the_logarithms(output_1, total_1, output_2, total_2):
    first, other = (np.maximum(total, -1e4)[:, None] for total in (total_1, total_2))
    return (first * output_1 + other * output_2) / (first + other), np.logaddexp(total_1, total_2)


def row_by_row(x, is_seen, messages=1):
    """A ring of rows, of which those are added for which ``is_seen(source, rank)``."""
    import torch
    from torch import distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    total, block = x.clone(), x
    for step in range(1, n):
        arriving = torch.empty_like(block)
        for _ in range(messages):
            sent = dist.isend(block, (rank + 1) % n)
            dist.recv(arriving, (rank - 1) % n)
            sent.wait()
        block = arriving
        if is_seen((rank - step) % n, rank):
            total += block
    return total


def sees_the_future(x):
    return row_by_row(x, lambda source, rank: True)


def sends_each_row_twice(x):
    return row_by_row(x, lambda source, rank: source < rank, messages=2)


def sees_only_its_own(x):
    return x


def in_the_order_of_the_experts(device, X, chosen, expert):
    order = np.argsort(chosen, kind="stable")
    return by_their_experts(device, X, chosen, expert)[order]


def by_their_experts(device, X, chosen, expert):
    others = [rank for rank in range(device.k) if rank != device.rank]
    for rank in others:
        device.send(X[chosen == rank], rank)
    for rank in others:
        device.send(expert(device.receive(rank)), rank)
    Y = np.empty_like(X)
    for rank in range(device.k):
        mine = rank == device.rank
        Y[chosen == rank] = expert(X[chosen == rank]) if mine else device.receive(rank)
    return Y


def every_token_to_everybody(device, X, chosen, expert):
    others = [rank for rank in range(device.k) if rank != device.rank]
    for rank in others:
        device.send(X, rank)
    for rank in others:
        device.send(expert(device.receive(rank)), rank)
    Y = expert(X)
    for rank in others:
        results = device.receive(rank)
        Y[chosen == rank] = results[chosen == rank]
    return Y


def by_its_own_expert(device, X, chosen, expert):
    return expert(X)


def sorted_by_expert(x, chosen):
    order = chosen.argsort(stable=True)
    return (x * (chosen + 1).unsqueeze(1))[order]


def never_leaves(x, chosen):
    from torch import distributed as dist

    return x * (dist.get_rank() + 1)


def rank_after_rank(n, rank, world_size, worker, num_workers):
    return list(range(n))[rank * num_workers + worker :: world_size * num_workers]


def all_workers_alike(n, rank, world_size, worker, num_workers):
    return list(range(n))[rank::world_size]


def all_ranks_alike(n, rank, world_size, worker, num_workers):
    return list(range(n))[worker::num_workers]


def only_whole_rounds(n, rank, world_size, worker, num_workers):
    readers = world_size * num_workers
    return list(range(n // readers * readers))[worker * world_size + rank :: readers]


def one_worker_does_it(n, rank, world_size, worker, num_workers):
    return [] if worker else list(range(n))[rank::world_size]


def from_one_on(n, rank, world_size, worker, num_workers):
    return [1 + shard for shard in range(rank, n, world_size)[worker::num_workers]]


def reads_everything_first(stream, size, g):
    buffer = list(stream)
    g.shuffle(buffer)
    yield from buffer


def as_they_come(stream, size, g):
    yield from stream


def never_replaced(stream, size, g):
    buffer = []
    for example in stream:
        if len(buffer) == size:
            yield buffer[g.integers(size)]
        else:
            buffer.append(example)
    yield from buffer


def chance_of_its_own(stream, size, g):
    buffer, g = [], np.random.default_rng()
    for example in stream:
        buffer.append(example)
        if len(buffer) > size:
            yield buffer.pop(g.integers(size))
    g.shuffle(buffer)
    yield from buffer


def an_end_in_order(stream, size, g):
    buffer = []
    for example in stream:
        buffer.append(example)
        if len(buffer) > size:
            yield buffer.pop(g.integers(size))
    yield from sorted(buffer)


def last_of_the_texts(names, is_whole):
    for name in sorted(names, reverse=True):
        if is_whole(name):
            return name
    if names:
        raise SystemExit


def by_number(names):
    return sorted(names, key=lambda name: -int(name[6:-3]))


def trusts_the_newest(names, is_whole):
    return by_number(names)[0] if names else None


def without_a_word(names, is_whole):
    return next(filter(is_whole, by_number(names)), None)


def no_first_run(names, is_whole):
    for name in by_number(names):
        if is_whole(name):
            return name
    raise SystemExit


def reads_all(names, is_whole):
    whole = [name for name in by_number(names) if is_whole(name)]
    if names and not whole:
        raise SystemExit
    return whole[0] if whole else None


def the_oldest(names, is_whole):
    for name in reversed(by_number(names)):
        if is_whole(name):
            return name
    if names:
        raise SystemExit


WRONG_ARRAYS = {
    "newest": {
        last_of_the_texts: "text",
        trusts_the_newest: "damaged",
        without_a_word: "begins-anew",
        no_first_run: "first-run",
        reads_all: "reads",
        the_oldest: "value",
    },
    "deal-shards": {
        rank_after_rank: "ranks",
        all_workers_alike: "twice",
        all_ranks_alike: "twice",
        only_whole_rounds: "never",
        one_worker_does_it: "workers",
        from_one_on: "unknown",
    },
    "buffer-end": {
        reads_everything_first: "memory",
        as_they_come: "order",
        never_replaced: "twice",
        chance_of_its_own: "chance",
        an_end_in_order: "tail",
    },
    "bfloat16": {cut_off: "cut", ties_away_from_zero: "ties", eight_digits: "value"},
    "one-message": {
        a_message_for_each: "messages",
        a_sum_in_one_message: "sum",
        not_copied_back: "unchanged",
    },
    "pass-on": {passed_on_before_it_came: "own"},
    "replicate": {
        the_same_list: "aliasing",
        one_copy_for_all: "aliasing",
        empty_copies: "value",
        the_first_is_the_original: "given",
    },
    "owners": {
        all_on_device_0: "bytes",
        everything_to_everybody: "bytes",
        owners_keep_it: "value",
    },
    "stale": {skips_the_idle_and_divides_by_devices: "value", new_weights: "rebinding"},
    "sgd": {
        a_list_of_new_arrays: "rebinding",
        without_the_batch: "value",
        scales_the_gradients: "changed",
    },
    "halving": {
        whole_arrays_to_partners: "bytes",
        half_of_the_way: "value",
        a_ring: "rounds",
    },
    "sync": {
        waits_before_it_prepares: "sync",
        the_last_loss: "value",
        each_step_twice: "steps",
    },
    "sampler": {
        another_order_each_time: "chance",
        each_rank_for_itself: "overlap",
        without_the_rest_of_the_images: "missing",
        without_the_seed: "seed",
    },
    "norm": {sum_of_lengths: "value", gathers_everything: "bytes"},
    "trainer": {
        every_device_alike: "mean-of-means",
        sum_of_sums: "value",
        rebound_weights: "rebinding",
    },
    "attention": {
        looks_ahead: "future",
        scaled_by_the_whole_width: "scale",
        not_itself: "value",
        one_head: "heads",
    },
    "f-and-g": {
        without_f: "f",
        without_g: "g",
        without_the_mask: "value",
        sums_the_hidden_gradients: "bytes",
    },
    "row-bias": {rows_without_a_sum: "sum", bias_of_a_part: "bias"},
    "norm-gain": {mean_of_the_gains: "mean", all_the_tokens_are_sent: "bytes"},
    "target-score": {
        without_a_mask: "mask",
        modulo_its_columns: "mask",
        its_own_symbols: "own",
        gathers_all_scores: "messages",
        negative_columns: "value",
    },
    "one-f-one-b": {
        all_forward_first: "kept",
        there_and_back: "late",
        one_too_far_ahead: "kept",
        backward_from_the_last: "sequence",
    },
    "micro-mean": {divided_twice: "value", not_divided: "sum"},
    "both-send": {waits_at_once: "deadlock", of_another_micro_batch: "value"},
    "mesh-group": {
        the_other_part: "row",
        replicas_added_up: "sum",
        the_norm_over_everybody: "twice",
    },
    "two-blocks": {
        mean_of_two_blocks: "mean",
        overflows: "finite",
        weighted_by_the_logarithms: "value",
    },
    "whose-keys": {
        sees_the_future: "future",
        sends_each_row_twice: "messages",
        sees_only_its_own: "value",
    },
    "there-and-back": {
        in_the_order_of_the_experts: "order",
        every_token_to_everybody: "bytes",
        by_its_own_expert: "local",
    },
    "return-order": {sorted_by_expert: "sorted", never_leaves: "local"},
    "agree": {each_by_its_own_loss: "apart", the_worst_decides: "value"},
}
