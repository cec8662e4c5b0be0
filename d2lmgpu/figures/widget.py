"""What a widget takes from its browser: only its own commands."""

import inspect
from collections.abc import Callable

import anywidget
from traitlets import Unicode


class MessageError(ValueError):
    """A message from the browser is none that the widget takes."""


class Widget(anywidget.AnyWidget):
    """A widget whose browser sends ``{"do": name, "token": text, …}`` and sets no traits.

    ``do`` is the name of one of its ``commands``, the rest are the arguments of what that calls,
    each an instance of what is said of it there. ``heard`` is the token of the last message that
    was taken in: until then line.js says that the kernel does not answer. A subclass says in
    ``words`` what stands in its place where a notebook was saved without the state of its widgets.
    """

    words = ""
    heard = Unicode().tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        self.on_msg(lambda widget, content, buffers: self._take(content))

    @property
    def commands(self) -> dict[str, Callable]:
        """What the browser may ask for, by name: the functions that do it."""
        raise NotImplementedError

    def __repr__(self):
        return self.words

    def set_state(self, sync_data) -> None:
        """Traits are this process's: what a browser says of them is not taken in."""

    def _take(self, content):
        try:
            method, given = self._asked(content)
            method(**given)
        finally:
            token = content.get("token") if isinstance(content, dict) else None
            self.heard = token if isinstance(token, str) else ""

    def _asked(self, content):
        """What a message calls, and its arguments; raises MessageError for others."""
        name = content.get("do") if isinstance(content, dict) else None
        method = self.commands.get(name) if isinstance(name, str) else None
        if method is None:
            allowed = ", ".join(sorted(self.commands))
            raise MessageError(f"{content!r:.200} is no message: do one of {allowed}.")
        given = {key: value for key, value in content.items() if key not in ("do", "token")}
        wanted = inspect.signature(method).parameters
        for key in wanted.keys() | given.keys():
            known = key in wanted and key in given
            if not known or not _is_a(given[key], wanted[key].annotation):
                raise MessageError(
                    f"{content!r:.200} is no message: {name} takes "
                    f"{', '.join(map(str, wanted.values())) or 'nothing'}."
                )
        return method, given


def _is_a(value, kind):
    """Whether ``value`` is of this kind; a bool is no number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
