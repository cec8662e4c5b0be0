"""What the reader of a lab chooses: the next run, and how the runs so far are shown."""

from traitlets import Bool, Dict, Float, HasTraits, Int, Set, Unicode, observe

LONGEST_NAME = 80  # letters of a run's name


class Choices(HasTraits):
    """The settings of the next run, names of runs, which are hidden, and the table's baseline."""

    train = Unicode(help="name of the function that runs next")
    num_gpus = Int(1)
    batch_size = Int(256)
    lr = Float(0.1)
    scale_lr = Bool(False, help="whether lr keeps its ratio to batch_size")
    num_epochs = Int(None, allow_none=True, help="None: train's own default")

    baseline = Int(None, allow_none=True, help="number of the table's row; None: the lab chooses")
    names = Dict(help="{id: name} of the runs that the reader has named")
    hidden = Set(help="ids of the runs that the reader has hidden")

    def knows(self, run_id) -> bool:
        """Whether a run of this lab has that id."""
        raise NotImplementedError

    def rename(self, id: int, name: str) -> None:
        """Call a run of this lab so; an empty name gives it the lab's own again."""
        name = " ".join(name.split())[:LONGEST_NAME]
        others = {other: own_name for other, own_name in self.names.items() if other != id}
        if self.knows(id):
            self.names = others | ({id: name} if name else {})

    def hide(self, id: int, hidden: bool = True) -> None:
        """Hide a run of this lab in the pictures, or show it again."""
        if self.knows(id):
            self.hidden = self.hidden - {id} | ({id} if hidden else set())

    def show_all(self) -> None:
        """Forget names, what is hidden, and the baseline."""
        self.names = {}
        self.hidden = set()
        self.baseline = None

    @observe("batch_size")
    def _scale(self, change):
        if self.scale_lr and change.old and change.new > 0:
            self.lr = float(f"{self.lr * change.new / change.old:.6g}")
