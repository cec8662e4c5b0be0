"""What PyTorch does otherwise on a GPU, as far as memory is concerned, for tensors of a CPU.

PyTorch 2.13: aten/src/ATen/native/Dropout.cpp (`is_fused_kernel_acceptable`),
aten/src/ATen/autocast_mode.h (`AT_FORALL_FP32`), torch/utils/_foreach_utils.py.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F
from torch.optim import optimizer
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils

# Autocast for GPUs computes these in float32; that for CPUs leaves most of them in 16 bits.
IN_FLOAT32 = {
    F.layer_norm,
    F.group_norm,
    F.softmax,
    F.log_softmax,
    F.cross_entropy,
    F.nll_loss,
    F.l1_loss,
    F.mse_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.kl_div,
    F.cosine_similarity,
    F.binary_cross_entropy_with_logits,
    F.normalize,
    F.softplus,
    torch.layer_norm,
    torch.group_norm,
    torch.softmax,
    torch.log_softmax,
    torch.exp,
    torch.log,
    torch.pow,
    torch.rsqrt,
    torch.reciprocal,
    torch.cumsum,
    torch.prod,
    torch.sum,
    torch.logsumexp,
    Tensor.softmax,
    Tensor.log_softmax,
    Tensor.exp,
    Tensor.log,
    Tensor.pow,
    Tensor.rsqrt,
    Tensor.reciprocal,
    Tensor.cumsum,
    Tensor.prod,
    Tensor.sum,
    Tensor.logsumexp,
    Tensor.__pow__,
}
LOW = (torch.float16, torch.bfloat16)


class OnGPU(TorchFunctionMode):
    """Functions of PyTorch keep for the backward pass what they would keep on a GPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (F.dropout, torch.dropout):
            return _dropout(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            kwargs = {name: value for name, value in kwargs.items() if name != "dropout_p"}
        elif func in IN_FLOAT32 and torch.is_autocast_enabled("cpu"):
            with torch.autocast("cpu", enabled=False):
                return func(*map(_float, args), **{k: _float(v) for k, v in kwargs.items()})
        return func(*args, **kwargs)


@contextmanager
def also_in_backward(mode) -> Iterator[None]:
    """Within it ``mode`` holds, in backward passes, too: what is computed again is as before."""
    run = torch.autograd._engine_run_backward

    def within(*args, **kwargs):
        with mode:
            return run(*args, **kwargs)

    with mode, mock.patch.object(torch.autograd, "_engine_run_backward", within):
        yield


def _float(value):
    return value.float() if isinstance(value, Tensor) and value.dtype in LOW else value


def _dropout(input, p=0.5, training=True, inplace=False, train=None):
    """With a mask of one byte a number; on a CPU it is of the input's type."""
    training = training if train is None else train
    if not training or p == 0:
        return input
    return torch.native_dropout(input, p, True)[0]


@contextmanager
def on_gpu() -> Iterator[None]:
    """Within it `OnGPU`, and optimizers take all parameters at once (`foreach`) unless told not."""
    types = [Tensor, torch.nn.Parameter, FakeTensor]
    with ExitStack() as stack:
        for module in (optimizer, _foreach_utils):
            stack.enter_context(mock.patch.object(module, "_foreach_supported_types", types))
        devices = "_get_foreach_kernels_supported_devices"
        stack.enter_context(mock.patch.object(optimizer, devices, lambda: ["cpu"]))
        stack.enter_context(also_in_backward(OnGPU()))
        yield
