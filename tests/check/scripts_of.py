"""The scripts of this folder, and what ``check`` should say of each."""

from pathlib import Path

FOLDER = Path(__file__).parent / "scripts"
DIFFERENT = ("right_batch-norm", "right_dropout")  # right, and the weights differ


def expected():
    """{script: its defect}, "none" for the right ones."""
    names = {path: path.stem.rpartition("_")[0] for path in sorted(FOLDER.glob("*.py"))}
    return {
        path: "none" if path.stem.startswith("right_") else name for path, name in names.items()
    }
