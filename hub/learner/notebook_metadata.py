"""A notebook that is only opened stays as it is: an extension of a learner's server.

JupyterLab writes into a notebook what its kernel says of itself, down to Python's version. What was
stored elsewhere would so be changed by opening it, be saved a little later, and stand in the way of
the course's next version. So a notebook arrives with these words in it.
"""

from ipykernel.ipkernel import IPythonKernel

OURS = "python3"  # the kernel of the chapters, which runs in this server's environment


def describe(model: dict, kernels) -> dict:
    """``model`` of a file, as the front end would write it; ``kernels`` is the server's manager."""
    opened = model["type"] == "notebook" and model["content"]
    metadata = opened["metadata"] if opened else {}
    if metadata.get("kernelspec", {}).get("name") == OURS:
        spec = kernels.get_kernel_spec(OURS)
        words = {"name": OURS, "display_name": spec.display_name, "language": spec.language}
        metadata |= {"kernelspec": words, "language_info": dict(IPythonKernel.language_info)}
    return model


def _load_jupyter_server_extension(app):
    """Jupyter's name. It comes after Jupytext, whose manager replaces the one before."""
    manager, kernels = app.contents_manager, app.kernel_spec_manager
    get = manager.get

    async def get_described(*arguments, **options):
        return describe(await get(*arguments, **options), kernels)

    manager.get = get_described
