"""What each chapter says of itself, and where the course has it: the one reader of these facts.

The order, the part and the title in the side bar are in ``_toc.yml``: a chapter is a notebook in
one of its parts. The notebook says the rest. Its title is its first heading, and its opening says
"takes about 30 minutes". In its metadata, which is the front matter of its text, stands

    course:
      idea: "the same in MXNet"      # what the map says below the title
      hosted: false                  # whether it runs on Kaggle and Colab
      framework: MXNet               # if its code is of one: PyTorch or MXNet
      twin: scratch/pytorch          # if it has one: said by one of the two
      experiments: 5                 # if there are some: sections in which the reader trains

Its exercises say themselves to which chapter they belong (exercise_masters.py).
"""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).resolve().parents[1]
FRAMEWORKS = ("PyTorch", "MXNet")  # the first is that of readers who have not chosen
KEY = "course"  # of a notebook's metadata
NEEDED = ("idea", "hosted")  # below that key
KNOWN = (*NEEDED, "framework", "twin", "experiments")
NO_HOST_HAS = "MXNet"  # it has no release for the Python of Kaggle and Colab
MINUTES = r"\btakes?\s+about\s+(\d+)\s+minutes\b"


class FactsError(ValueError):
    """A chapter does not say what the course asks of it, or two chapters contradict each other."""


@dataclass(frozen=True)
class Facts:
    """What one notebook says of itself."""

    title: str
    minutes: int
    idea: str
    hosted: bool
    framework: str | None = None
    twin: str | None = None
    experiments: int = 0


@dataclass(frozen=True)
class Chapter:
    """A chapter in its place: ``name`` is 'scratch/pytorch', ``short`` its title in the side bar.

    ``twin`` is the name of the other one, whichever of the two says it.
    """

    name: str
    part: str
    short: str
    facts: Facts
    twin: str | None

    @property
    def page(self) -> str:
        """Its name in _toc.yml."""
        return f"chapters/{self.name}"

    @property
    def only_for(self) -> str | None:
        """The framework whose readers it is for; None if it is for all.

        That are pages with a twin. Of the others whoever chose MXNet reads those in PyTorch as
        well, but nobody has to read one in MXNet who did not choose it.
        """
        is_for_all = self.twin is None and self.facts.framework != FRAMEWORKS[1]
        return None if is_for_all else self.facts.framework


def facts(notebook: nbformat.NotebookNode, name: str) -> Facts:
    """What the chapter ``name`` says of itself; FactsError says what is missing or wrong."""

    def need(condition, what):
        if not condition:
            raise FactsError(f"chapters/{name}.ipynb: {what}")

    course = notebook.metadata.get(KEY)
    need(isinstance(course, dict), f"its metadata need '{KEY}', see CONTRIBUTING.md, Add a chapter")
    for key in course:
        need(key in KNOWN, f"'{KEY}' has {', '.join(KNOWN)}, and no '{key}'")
    for key in NEEDED:
        need(key in course, f"'{KEY}' has no '{key}'")
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title = re.match(r"# (\S.*)", text)
    need(title, "it does not start with a title")
    minutes = re.findall(MINUTES, re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0])
    need(len(minutes) == 1, "its opening says once that it 'takes about 30 minutes'")
    stated = Facts(title=title[1].strip(), minutes=int(minutes[0]), **course)
    need(isinstance(stated.idea, str) and stated.idea, "'idea' is a few words for the map")
    # jupytext fails at a fact that is null
    right = "framework" not in course or stated.framework in FRAMEWORKS
    need(right, f"'framework' is {' or '.join(FRAMEWORKS)}, and left out for none or both")
    need(isinstance(stated.hosted, bool), "'hosted' is true or false")
    runs = stated.framework != NO_HOST_HAS or not stated.hosted
    need(runs, f"'hosted' is false in {NO_HOST_HAS}, which Kaggle and Colab cannot install")
    is_number = isinstance(stated.experiments, int) and stated.experiments >= 0
    need(is_number, "'experiments' is the number of sections in which the reader trains")
    return stated


def chapters(root: Path = ROOT) -> dict[str, Chapter]:
    """{name: chapter} in the order of ``_toc.yml``; FactsError as for one of them."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    places = {
        page["file"].removeprefix("chapters/"): (part["caption"], page.get("title"))
        for part in toc.get("parts", [])
        for page in part["chapters"]
        if (root / f"{page['file']}.ipynb").exists()
    }
    facts_of = {
        name: facts(nbformat.read(root / f"chapters/{name}.ipynb", as_version=4), name)
        for name in places
    }
    twins = _twins(facts_of)
    return {
        name: Chapter(name, part, short or facts_of[name].title, facts_of[name], twins.get(name))
        for name, (part, short) in places.items()
    }


def _twins(facts_of):
    """{name: the twin's name} for both of each pair."""
    twins = {}
    for name, own in facts_of.items():
        if own.twin is None:
            continue
        if own.twin not in facts_of:
            raise FactsError(f"chapters/{name}.ipynb: its twin {own.twin} is not in _toc.yml")
        if {own.framework, facts_of[own.twin].framework} != set(FRAMEWORKS):
            both = " and ".join(FRAMEWORKS)
            raise FactsError(f"chapters/{name}.ipynb and its twin {own.twin} are not in {both}")
        if name in twins or own.twin in twins:
            raise FactsError(f"chapters/{name}.ipynb: one of a pair says 'twin', and of one pair")
        twins |= {name: own.twin, own.twin: name}
    return twins
