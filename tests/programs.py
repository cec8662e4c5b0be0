"""The programs of ``tools/`` as modules, by their names: ``program("book")``."""

import importlib
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path += [str(TOOLS), str(TOOLS / "pages")]
program = importlib.import_module
