"""A bare page that can train, opened as a file and from a server."""

import shutil

import numpy as np
import pytest
from in_page import SECONDS, TRAINING, Kernels, page_images
from static_site import served

PAGE = '<!doctype html><meta charset="utf-8">{head}<title>x</title>{script}'
SCRIPT = '<script src="training.js"></script>'
# What a strict host may send, and what a worker must be allowed.
POLICY = '<meta http-equiv="Content-Security-Policy" content="{}">'
BUILDS = ["simd", "plain"]
POLICIES = {
    "no-workers.html": "default-src 'self' 'wasm-unsafe-eval'",
    "no-wasm.html": "default-src 'self'; worker-src blob:",
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """What lies beside each other in a built page."""
    folder = tmp_path_factory.mktemp("training")
    for name in ("training.js", "device.js", "code.js"):
        shutil.copy(TRAINING / name, folder)
    page_images.write(folder / "images.js")
    (folder / "index.html").write_text(PAGE.format(head="", script=SCRIPT))
    for name, policy in POLICIES.items():
        (folder / name).write_text(PAGE.format(head=POLICY.format(policy), script=SCRIPT))
    return folder


@pytest.fixture(scope="session")
def address(folder):
    """The folder behind a server: how its addresses start."""
    with served(folder) as address:
        yield f"{address}/"


@pytest.fixture
def blank(browser):
    """A page that is not opened yet; an error of its scripts fails the test."""
    context = browser.new_context()
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    context.close()
    assert page.errors == []


@pytest.fixture
def page(blank, folder):
    """The page, opened from the disk."""
    blank.goto((folder / "index.html").as_uri())
    return blank


@pytest.fixture(scope="module")
def builds(browser, folder):
    """The exported functions of both builds, each in a page that the tests of a file share."""
    with browser.new_context() as context:
        pages = {build: context.new_page() for build in BUILDS}
        for page in pages.values():
            page.goto((folder / "index.html").as_uri())
        yield {build: Kernels(page, build) for build, page in pages.items()}


@pytest.fixture(params=BUILDS)
def kernels(builds, request):
    return builds[request.param]


@pytest.fixture(scope="session")
def images():
    """``(X, y)``: all 7,000 images as a device sees them."""
    block = np.frombuffer(page_images.block(), np.uint8)
    y, pixels = block[:7000], block[7000:]
    return np.stack([pixels & 15, pixels >> 4], axis=-1).reshape(7000, 784) / 15, y.astype(int)
