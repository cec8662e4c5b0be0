"""How long a step should take: the model, its machines, fits, measurements and forecasts."""

from d2lmgpu.machine.checks import Need


class CostError(ValueError):
    """The cost model was given something that no machine or run can have."""


need = Need(CostError)
