"""Lightning and Fabric in as many processes as are watched, whatever number of devices they name.

Both refuse to begin in other than so many processes, so that a script with ``devices=2`` could not
be run with one. They take the number when they are made; here it is put in, for each spelling of
the package, and CPU cores in place of GPUs.
"""

from functools import wraps

from d2lmgpu.watch.import_hook import once_imported

CONNECTORS = {  # the modules that read the arguments -> the class in each
    "lightning.fabric.connector": "_Connector",
    "lightning_fabric.connector": "_Connector",
    "lightning.pytorch.trainer.connectors.accelerator_connector": "_AcceleratorConnector",
    "pytorch_lightning.trainer.connectors.accelerator_connector": "_AcceleratorConnector",
}
GPUS = ("gpu", "cuda")


def follow_the_processes(watch, device) -> None:
    """From now on; ``device`` is that of ``cuda.on_cpu``, which is told who asks for GPUs."""
    for module, name in CONNECTORS.items():
        once_imported(module, lambda module, name=name: _follow(watch, device, module, name))


def _follow(watch, device, module, name):
    connector = getattr(module, name)
    real = connector.__init__

    @wraps(real)
    def made(instance, *args, accelerator="auto", **kwargs):
        if accelerator in GPUS:
            device.asked(watch.lines.where())
        of_here = {"accelerator": "cpu", "devices": watch.group.world, "num_nodes": 1}
        return real(instance, *args, **kwargs | of_here)

    connector.__init__ = made
