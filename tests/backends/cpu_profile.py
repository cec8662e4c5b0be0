"""PyTorch's own account of memory on a CPU."""

import json
import tempfile
from pathlib import Path


def highest_total(profiler):
    """The most bytes that its allocator had given out, above what it had before ``profiler``."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    noted = [event for event in events if event["name"] == "[memory]"]
    noted = [event["args"] for event in sorted(noted, key=lambda event: event["ts"])]
    before = noted[0]["Total Allocated"] - noted[0]["Bytes"]
    return max(event["Total Allocated"] for event in noted) - before
