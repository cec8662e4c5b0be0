"""Every chapter is run once for nbval and for the book, whichever comes first.

nbval runs a cell and compares it. Here nbclient makes the notebook's outputs of the same messages
of the kernel, as it does when the book runs a chapter; the book looks first into jupyter-cache.
What the book has run, nbval finds there, and only compares.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby

import nbformat
import pytest
from chapter_cache import ChapterCache
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete
from nbval.plugin import coalesce_streams


class ChapterRun:
    """One chapter while nbval runs it (``file``: nbval's collector, whose kernel is alive)."""

    def __init__(self, file):
        self.began = time.time()
        self.failed = False
        self._id = None
        self.nb = nbformat.read(file.path, as_version=4)
        self._code = [(i, cell) for i, cell in enumerate(self.nb.cells) if cell.cell_type == "code"]
        about = file.kernel.kc.kernel_info(reply=True, timeout=60)["content"]
        self.nb.metadata["language_info"] = about["language_info"]
        self._client = NotebookClient(self.nb, record_timing=False)
        self._get, file.get_kernel_message = file.get_kernel_message, self._message

    def begin(self, number) -> None:
        self._index, self._cell = self._code[number]
        self._cell.outputs, self._id = [], None
        self._client.clear_before_next_output = False

    def _message(self, *args, **kwargs):
        """The next message, as nbval asks for it, heard by nbclient, too."""
        message = self._get(*args, **kwargs)
        parent = message["parent_header"].get("msg_id")
        if message["msg_type"] == "execute_input":
            self._id = parent
        if parent == self._id:  # what threads of earlier cells say belongs to no cell
            with suppress(CellExecutionComplete):
                self._client.process_message(message, self._cell, self._index)
        return message


class Executed:
    """A pytest plugin: keeps every chapter without a failed cell."""

    def __init__(self, kept: ChapterCache):
        self._kept, self._runs = kept, {}
        os.environ.update(kept.environment())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item) -> Iterator[None]:
        run = self._runs.get(item.parent) or self._runs.setdefault(
            item.parent, ChapterRun(item.parent)
        )
        run.begin(item.cell_num)
        try:
            return (yield)
        except BaseException:
            run.failed = True
            raise

    def pytest_runtest_teardown(self, item, nextitem) -> None:
        if nextitem is None or nextitem.parent is not item.parent:
            run = self._runs.pop(item.parent, None)  # none of a chapter whose kernel did not start
            if run and not run.failed:
                self._kept.put(run.nb, item.path, time.time() - run.began, run.began)


def compare(item, output) -> None:
    """nbval's comparison of a cell, without its run. What is printed may have come in pieces."""
    stored, output = coalesce_streams(item.cell.outputs), coalesce_streams(output)
    if item.options["check"] and not item.compare_outputs(output, stored):
        item.raise_cell_error("Cell outputs differ", "\n".join(item.comparison_traceback))


class Compared:
    """A pytest plugin: cells of chapters that are kept are compared and not run."""

    def __init__(self, kept: ChapterCache):
        self._kept = kept

    def pytest_report_header(self) -> str:
        return "chapters: what `make book` has run is compared, and not run again"

    def pytest_collection_modifyitems(self, items) -> None:
        for file, cells in groupby(items, lambda item: item.parent):
            if (record := self._kept.find(file.nb)) is None or self._kept.is_stale(record):
                continue  # it was not in the book, or has been changed since
            _, kept = self._kept.cache.merge_match_into_notebook(file.nb)
            code = [cell for cell in kept.cells if cell.cell_type == "code"]
            file.setup = file.setup_sanitize_files
            for item in cells:
                item.runtest = partial(compare, item, code[item.cell_num].outputs)
