"""What a lab is told of the devices during a run: on the CPU what they do."""

from mxnet import gluon, npx

from d2lmgpu.process.lanes import LISTENER, Listener, Steps, exchange


def listen(kind, make=Steps) -> Listener:
    """Have the lab told of this process's devices, which are of that kind ('gpu' or 'cpu').

    ``make`` makes the steps. MXNet queues its work, so a timed step waits for it. A Gluon trainer
    exchanges when it has its gradients added up; where its kvstore updates the weights, too, that
    is in it.
    """
    gluon.Trainer._allreduce_grads = exchange(gluon.Trainer._allreduce_grads)
    return LISTENER.listen(make(npx.waitall, timed=kind == "cpu"))
