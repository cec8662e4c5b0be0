"""What a process logs, and how: a cell may have said so, and holds for the workers, too.

That is the level of each logger, and handlers of the two standard streams. Others hold files or
objects of the process.
"""

import logging
import sys

PLAIN = vars(logging.Formatter()).keys()  # what a formatter holds that can go elsewhere
STREAMS = {"stdout": "stdout", "<stdout>": "stdout", "stderr": "stderr", "<stderr>": "stderr"}


def logged() -> dict:
    """``{logger's name: (level, hands on?, [(stream's name, level, formatter), …])}``"""
    known = {"": logging.root, **logging.root.manager.loggerDict}
    return {
        name: (logger.level, logger.propagate, list(filter(None, map(_described, logger.handlers))))
        for name, logger in known.items()
        if isinstance(logger, logging.Logger) and (logger.level or logger.handlers)
    }


def _described(handler):
    """A handler of a standard stream as plain values, None for another."""
    name = STREAMS.get(getattr(getattr(handler, "stream", None), "name", None))
    formatter = handler.formatter
    plain = type(handler) is logging.StreamHandler and not handler.filters
    if formatter is not None:
        plain = plain and type(formatter) is logging.Formatter and vars(formatter).keys() == PLAIN
    return (name, handler.level, formatter) if name and plain else None


def log_as(settings: dict) -> None:
    """Log as the process does whose ``logged`` that is; a logger keeps handlers that it has."""
    for name, (level, propagate, handlers) in settings.items():
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = propagate
        for stream, least, formatter in handlers if not logger.handlers else ():
            handler = logging.StreamHandler(getattr(sys, stream))
            handler.setLevel(least)
            handler.setFormatter(formatter)
            logger.addHandler(handler)
