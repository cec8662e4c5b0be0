"""From a chapter's link to the first "correct" in a real JupyterLab."""

import shutil

from exercise_notebook import CHAPTER, NOTEBOOK, answer_first
from pages import open_notebook, wait_for_notebook
from servers import ROOT


def test_from_the_chapter_s_link_to_the_first_correct(server, page):
    for path in (CHAPTER, NOTEBOOK):
        (server.notebooks / path).parent.mkdir(parents=True)
        shutil.copy(ROOT / path, server.notebooks / path)
    open_notebook(page, server, name=CHAPTER)
    page.get_by_role("link", name="1. The mean of means").click()
    wait_for_notebook(page, NOTEBOOK)
    answer_first(page)
