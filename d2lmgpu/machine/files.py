"""The course's files: beside the package in a checkout, within it where the wheel was installed."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = PACKAGE / "files"  # as pyproject.toml says
COURSE = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent
CHAPTERS = COURSE / "chapters"
CLUSTERS = COURSE / "clusters"
RECORDS = COURSE / "records"
