"""A run of the break-it lab, all buttons pressed: ``pytest -s tests/cluster/record_breaking.py``.

As root. It becomes the record that the page shows.
"""

from test_breaking import PRESSED, harmed, lab  # noqa: F401, a fixture

from d2lmgpu.course.breaking.record import STEM
from d2lmgpu.records import store


def test_every_button(lab):  # noqa: F811
    for name in PRESSED:
        for row in harmed(lab, name)["rows"]:
            print(row, flush=True)
    record = store.provenance("pytest -s tests/cluster/record_breaking.py") | {
        "data": "3,000 images of Fashion-MNIST, a batch of 120 over three hosts, 100 Mbit/s",
        "outcomes": lab.outcomes,
    }
    print("Written to", store.write("records", STEM, record))
