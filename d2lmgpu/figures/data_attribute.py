"""What a picture tells the pointer and the keyboard, as assets/pages/charts.js reads it."""

import json
from html import escape


def data_attribute(series: dict) -> str:
    """The attribute of an SVG element that carries the values of its `series`.

    series: name, as in the legend -> [(left, right, top, where, value)], the first three in parts
    of a thousand of the picture, from its left and its top. One line a series, so that pictures
    which share one can keep it once.
    """
    if not series:
        return ""
    rows = [
        json.dumps({"name": name, "points": points}, separators=(",", ":"), ensure_ascii=False)
        for name, points in series.items()
    ]
    data = escape(",\n".join(rows), quote=False).replace("'", "&#x27;")
    return f"data-chart='[{data}]' "
