"""The Python of a notebook's cells."""


def python_of(source):
    """The code of a cell, IPython's magics left out."""
    lines = source.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
