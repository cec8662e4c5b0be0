"""What a step of training in PyTorch takes of a GPU's memory, found without a GPU."""

from d2lmgpu.torch.memory.fits import fits
from d2lmgpu.torch.memory.largest import largest_batch
from d2lmgpu.torch.memory.remedies import remedies

__all__ = ["fits", "largest_batch", "remedies"]
