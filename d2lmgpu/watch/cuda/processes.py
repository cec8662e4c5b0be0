"""What joins processes: groups, meshes, and the networks that exchange their gradients."""

import os
from collections.abc import Callable
from functools import wraps
from urllib.parse import urlsplit

from d2lmgpu.process.addresses import LOOPBACK
from d2lmgpu.watch.collectives import replace_init
from d2lmgpu.watch.cuda.device import replaced
from d2lmgpu.watch.import_hook import once_imported
from d2lmgpu.watch.ranks import MEETING

FSDP2 = "torch.distributed.fsdp._fully_shard._fsdp_init"  # a second of imports, of those who use it
OF_THIS_MACHINE = (None, "localhost", LOOPBACK)


def replace(torch, device, devices) -> None:
    """gloo is in place of NCCL, and nothing is bound to a GPU."""
    networks(torch, device)
    if torch.distributed.is_available():
        groups(torch, device)


def networks(torch, device) -> None:
    """DistributedDataParallel and DataParallel without devices, and SyncBatchNorm on the CPU."""
    nn = torch.nn

    def ddp(real):
        def made(self, module, device_ids=None, output_device=None, *args, **kwargs):
            real(self, module, None, None, *args, **kwargs)

        return made

    def data_parallel(real):
        def made(self, module, device_ids=None, output_device=None, dim=0):
            nn.Module.__init__(self)
            self.module, self.dim = module, dim
            self.device_ids, self.output_device = [], None  # without any it calls its module

        return made

    def unbound(real):  # it wants a GPU for SyncBatchNorm
        return lambda self, *_: None

    replaced(nn.parallel.DistributedDataParallel, "__init__", ddp)
    replaced(nn.parallel.DistributedDataParallel, "_passing_sync_batchnorm_handle", unbound)
    replaced(nn.DataParallel, "__init__", data_parallel)
    nn.SyncBatchNorm.forward = synchronised(torch)


def synchronised(torch) -> Callable:
    """The forward pass of SyncBatchNorm for tensors of the CPU, with PyTorch's own exchange."""
    from torch.distributed.nn import functional

    def forward(self, X):
        dist = torch.distributed
        group = self.process_group or (dist.group.WORLD if dist.is_initialized() else None)
        if not self.training or group is None or dist.get_world_size(group) == 1:
            return torch.nn.modules.batchnorm._BatchNorm.forward(self, X)
        over = [0, *range(2, X.dim())]
        number = X.new_tensor([X.numel() / X.shape[1]])
        sums = torch.cat([X.sum(over), (X * X).sum(over), number])
        sums = functional.all_reduce(sums, group=group)
        number, k = sums[-1], X.shape[1]
        mean = sums[:k] / number
        variance = sums[k : 2 * k] / number - mean * mean
        if self.track_running_stats:
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                part = self.momentum
                if part is None:
                    part = 1 / self.num_batches_tracked.item()
                unbiased = variance * number / (number - 1)
                self.running_mean.lerp_(mean.to(self.running_mean), part)
                self.running_var.lerp_(unbiased.to(self.running_var), part)
        shape = [1, k, *[1] * (X.dim() - 2)]
        Y = (X - mean.view(shape)) * torch.rsqrt(variance.view(shape) + self.eps)
        return Y * self.weight.view(shape) + self.bias.view(shape) if self.affine else Y

    return forward


def groups(torch, device) -> None:
    """Groups, meshes and barriers of processes."""
    dist = torch.distributed
    from torch.distributed import device_mesh

    address, _, port = os.environ.get(MEETING, "").partition(":")
    meeting = {"MASTER_ADDR": address, "MASTER_PORT": port} if port else {}

    def begin(real):
        def begun(backend=None, init_method=None, *args, **kwargs):
            backend = gloo(backend)
            kwargs.pop("device_id", None)
            kwargs.pop("pg_options", None)
            # the script's own is a machine of somebody's cluster
            if os.environ.get("MASTER_ADDR") not in OF_THIS_MACHINE:
                os.environ |= meeting
            named = urlsplit(init_method or "")
            if named.scheme == "tcp" and named.hostname not in OF_THIS_MACHINE and meeting:
                init_method = "tcp://{MASTER_ADDR}:{MASTER_PORT}".format(**meeting)
            return real(backend, init_method, *args, **kwargs)

        return begun

    def gloo(backend):
        if backend and "nccl" in str(backend).lower():
            device("cuda")
            return "gloo"
        return backend

    def new_group(real):
        def made(ranks=None, timeout=None, backend=None, pg_options=None, *args, **kwargs):
            kwargs.pop("device_id", None)
            return real(ranks, timeout, gloo(backend), None, *args, **kwargs)

        return made

    def mesh(real):
        return lambda device_type, *args, **kwargs: real(device(device_type), *args, **kwargs)

    def default_mesh(real):  # of FSDP, which looks for an accelerator by itself
        return lambda kind, *args, **kwargs: real(device.instead(kind), *args, **kwargs)

    def barrier(real):
        return lambda group=None, async_op=False, device_ids=None: real(group, async_op)

    replace_init(dist, wraps(dist.init_process_group)(begin(dist.init_process_group)))
    for owner in (dist, dist.distributed_c10d):
        replaced(owner, "new_group", new_group)
        replaced(owner, "barrier", barrier)
        replaced(owner, "is_nccl_available", lambda real: lambda: True)
    replaced(device_mesh, "init_device_mesh", mesh)
    once_imported(FSDP2, lambda fsdp: replaced(fsdp, "init_device_mesh", default_mesh))
    dist.init_device_mesh = device_mesh.init_device_mesh

    def made(real):
        def of_devices(self, device_type, *args, **kwargs):
            real(self, device(device_type), *args, **kwargs)

        return of_devices

    replaced(device_mesh.DeviceMesh, "__init__", made)
