"""What a step of training takes of a GPU's memory: storages over time, the allocator, cards."""

from d2lmgpu.machine.checks import Need

need = Need(ValueError)
