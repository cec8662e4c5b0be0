"""What a widget takes from its browser: only the messages that it has a method for."""

import inspect

import anywidget
from traitlets import Unicode


class MessageError(ValueError):
    """A message from the browser is none that the widget takes."""


class Widget(anywidget.AnyWidget):
    """A widget whose browser sends ``{"do": name, "token": text, …}`` and sets no traits.

    ``do`` names a method that begins with ``do_``, the rest are its arguments, each an instance of
    what the method says it is. ``heard`` is the token of the last message that was taken in: until
    then line.js says that the kernel does not answer. A subclass says in ``words`` what stands in
    its place where a notebook was saved without the state of its widgets.
    """

    words = ""
    heard = Unicode().tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        self.on_msg(lambda widget, content, buffers: self._take(content))

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
        """The method that a message names, and its arguments; raises MessageError for others."""
        named = isinstance(content, dict) and isinstance(content.get("do"), str)
        method = named and getattr(type(self), f"do_{content['do']}", None)
        if not method:
            allowed = [name[3:] for name in dir(type(self)) if name.startswith("do_")]
            raise MessageError(f"{content!r:.200} is no message: do one of {', '.join(allowed)}.")
        given = {name: value for name, value in content.items() if name not in ("do", "token")}
        wanted = dict(list(inspect.signature(method).parameters.items())[1:])
        for name in wanted.keys() | given.keys():
            known = name in wanted and name in given
            if not known or not _is_a(given[name], wanted[name].annotation):
                raise MessageError(
                    f"{content!r:.200} is no message: {content['do']} takes "
                    f"{', '.join(map(str, wanted.values())) or 'nothing'}."
                )
        return getattr(self, method.__name__), given


def _is_a(value, kind):
    """Whether ``value`` is of this kind; a bool is no number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
