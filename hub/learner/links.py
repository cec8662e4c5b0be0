"""Launch links bring what they may: an extension of a learner's server, around nbgitpuller.

A link may stand on anybody's page. By itself nbgitpuller brings any repository into any folder:
one click, and a stranger's code is where the next kernel runs it.
"""

from importlib import resources

from jupyter_server.utils import url_path_join
from nbgitpuller import _compat
from tornado import web
from traitlets import List, Unicode
from traitlets.config import Configurable

WORDS = {"repo", "branch", "urlpath"}  # of a link
ALSO = {"targetpath", "_xsrf"}  # what nbgitpuller's page adds when it asks for the files


class LaunchLinks(Configurable):
    """What launch links may bring into this server."""

    repositories = List(
        Unicode(), config=True, help="Each as ADDRESS#BRANCH, compared letter by letter."
    )

    def check(self, handler, words: set[str]) -> None:
        """Raise ``HTTPError`` 403, in words, unless ``handler``'s request is of an allowed link.

        It may say ``words``, each once, so that nbgitpuller takes the one that was looked at.
        """
        names = set(handler.request.arguments)
        if unknown := names - words:
            refuse(f"it says {', '.join(sorted(unknown))}, which no link may")
        asked = {name: handler.get_arguments(name) for name in names}
        if twice := [name for name, texts in asked.items() if len(texts) > 1]:
            refuse(f"it says {', '.join(twice)} more than once")
        repository, branch = (asked.get(name, [""])[0] for name in ("repo", "branch"))
        if f"{repository}#{branch}" not in self.repositories:
            refuse(f"{repository!r} with the branch {branch!r} is not what this hub brings")
        folder = repository.rsplit("/", 1)[-1]  # as nbgitpuller names it
        if asked.get("targetpath", [folder]) != [folder]:
            refuse(f"what it brings belongs into the folder {folder!r}")


def refuse(reason: str) -> None:
    raise web.HTTPError(
        403,
        f"This launch link was not followed: {reason}. Open the chapter by the button on its page,"
        " or ask who runs this hub to allow the link (HUB_REPOSITORIES).",
    )


def guarded(handler, links: LaunchLinks, words: set[str]) -> type:
    """nbgitpuller's ``handler`` for requests that ``links`` lets through."""

    class Guarded(handler):
        @web.authenticated
        async def get(self):
            links.check(self, words)
            await super().get()

    return Guarded


def _jupyter_server_extension_points():
    return [{"module": "links"}]


def _load_jupyter_server_extension(app):
    """What nbgitpuller's own does, without its two old addresses, which led to any repository."""
    _compat.get_base_handler(app)  # which its handlers take when they are imported
    from nbgitpuller import handlers

    handlers.jinja_env.autoescape = True  # else a link's words are HTML, and scripts, in the page
    app.web_app.settings["nbapp"] = app
    links = LaunchLinks(parent=app)
    address = url_path_join(app.web_app.settings["base_url"], "git-pull")
    static = {"path": str(resources.files("nbgitpuller") / "static")}
    page, files = handlers.UIHandler, handlers.SyncHandler
    app.web_app.add_handlers(
        ".*",
        [
            (address, guarded(page, links, WORDS)),
            (url_path_join(address, "api"), guarded(files, links, WORDS | ALSO)),
            (url_path_join(address, "static", "(.*)"), web.StaticFileHandler, static),
        ],
    )
