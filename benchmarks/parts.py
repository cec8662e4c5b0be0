"""Where the time of an update goes."""

from benchmarks.measure import BATCHES, WARMUP


def where_time_goes(d2l, params, num_gpus=2, batch_size=256):
    """Share of each part of an update of LeNet, the parts timed one after another.

    ``d2l`` is one of the backends, ``params`` are LeNet's parameters.
    """
    devices, timers = d2l.devices(num_gpus), {}
    device_params = [d2l.get_params(params, device) for device in devices]
    train_iter, _ = d2l.load_data_fashion_mnist(batch_size)

    def part(name, fn, *args):
        timer = timers.setdefault(name, d2l.Timer())
        timer.start()
        result = fn(*args)
        d2l.synchronize()
        timer.stop()
        return result

    def allreduce_all():
        for i in range(len(params)):
            d2l.allreduce([replica[i].grad for replica in device_params])

    def step_all():
        for replica in device_params:
            d2l.sgd(replica, 0.1, batch_size)

    batches = iter(train_iter)
    for i in range(WARMUP + BATCHES):
        if i == WARMUP:
            timers.clear()
        X, y = part("load", next, batches)
        shards = part("split", d2l.split_batch, X, y, devices)
        part("forward and backward", d2l.parallel, d2l.forward_backward, *shards, device_params)
        part("allreduce", allreduce_all)
        part("step", step_all)
    total = sum(t.sum() for t in timers.values())
    return {name: round(t.sum() / total, 4) for name, t in timers.items()}
