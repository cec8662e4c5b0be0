"""How long a step of a training's ``train`` takes, from short runs in silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from d2lmgpu.machine.environ import variable
from d2lmgpu.machine.profiles import CAP

IMAGES, NUM_EPOCHS = 768, 4


def step_seconds(train, num_gpus, batch_size) -> float:
    """Median seconds of a step of ``train``; its first epoch warms up and does not count.

    The epoch should be whole batches.
    """
    run = train(num_gpus, batch_size, 0.05, NUM_EPOCHS)
    return median(run.seconds[1:]) / -(-run.num_samples // batch_size)


@contextmanager
def short_runs(num_images=IMAGES) -> Iterator[None]:
    """Within it, a run uses at most ``num_images`` of its profile, and prints and draws nothing."""
    from IPython.utils.capture import capture_output

    with variable(CAP, str(num_images)), capture_output():
        yield
