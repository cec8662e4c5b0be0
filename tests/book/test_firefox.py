"""The built pages in Firefox, from a server and from files: they train, and nothing is wrong."""

import pytest
from firefox import firefox
from soaking import sample

ROWS = """[...document.querySelectorAll('.training tbody tr')]
    .map(row => [...row.children].map(cell => cell.textContent))"""


@pytest.fixture(scope="module")
def fox(tmp_path_factory):
    with firefox(tmp_path_factory.mktemp("firefox")) as fox:
        yield fox


def set_up(fox, epochs):
    """The smallest network, for so many epochs."""
    fox.evaluate(f"""(() => {{
        const {{ network, epochs, lr }} = document.querySelector(".training form").elements;
        [network.value, epochs.value, lr.value] = ["mlp", "{epochs}", "0.1"];
    }})()""")


def test_the_first_page_trains_and_two_devices_compute_what_one_computes(fox, site):
    fox.open(f"{site}/chapters/intro.html", 1280)
    fox.wait("document.querySelector('.training').dataset.ready !== undefined")
    set_up(fox, epochs=1)
    fox.press("One device, then two")
    fox.wait("document.querySelectorAll('.training tbody tr').length === 2")
    fox.wait("!document.querySelector('.training-pair').disabled")
    first, second = fox.evaluate(ROWS)
    assert (
        (first[2], second[2]) == ("1", "2")
        and first[-2] == second[-2]
        and second[-1] == "identical"
    )
    set_up(fox, epochs=1000)
    fox.press("One device, then two")
    fox.wait("Number(document.querySelector('.training progress').value) > 0")
    fox.press("Stop")
    fox.wait("document.querySelector('.training-stop').disabled")
    assert len(fox.evaluate(ROWS)) == 3
    assert fox.troubles() == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(
    "page", sample(1, ["scaling/allreduce", "scratch/pytorch", "lab/training-lab"])
)
def test_pages_fit_and_complain_of_nothing(fox, built, page, width):
    fox.open(f"{built.as_uri()}/chapters/{page}.html", width)
    assert fox.evaluate("document.documentElement.scrollWidth") <= width
    assert fox.troubles() == []


def test_the_framework_is_remembered(fox, site):
    fox.open(f"{site}/chapters/intro.html", 1280)
    fox.evaluate("document.querySelector('choose-framework input[value=MXNet]').click()")

    def following(query=""):
        fox.open(f"{site}/chapters/foundations/data-parallelism.html{query}", 1280)
        return fox.evaluate("new URL(document.querySelector('.right-next').href).pathname")

    assert following().endswith("/scratch/mxnet.html")
    assert following("?framework=PyTorch").endswith("/scratch/pytorch.html")
    assert fox.evaluate("location.search") == "", "it is taken out of the address"
