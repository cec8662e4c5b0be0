"""More than sixty notebooks are graded, here and in Gradescope's folders: equal in all.

``pytest -s tests/course/class_of_sixty.py``
"""

from kinds_of_submission import KINDS
from test_grading import compared


def test_make_grade_and_gradescope_agree_on_all_kinds(made, tmp_path):
    assert len(KINDS) >= 60
    rows = compared(made, tmp_path, list(KINDS), cell_seconds=10)
    for name, row in sorted(rows.items()):
        print(f"{name}: {row['total']} {row['remark']}")
