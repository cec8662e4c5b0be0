"""What a lab is told of the devices during a run: on the CPU what they do."""

from mxnet import gluon, npx

from d2lmgpu.process import lanes


def listen(kind, steps=lanes.Steps):
    """Have the lab told of this process's devices, which are of that kind ('gpu' or 'cpu').

    ``steps`` makes the steps. MXNet queues its work, so a timed step waits for it. A Gluon trainer
    exchanges when it has its gradients added up; where its kvstore updates the weights, too, that
    is in it.
    """
    lanes.listen(npx.waitall, timed=kind == "cpu", steps=steps)
    gluon.Trainer._allreduce_grads = lanes.exchange(gluon.Trainer._allreduce_grads)
