"""A table that is one in a page, and aligned text where there is no HTML."""

from html import escape

from d2lmgpu.figures.checks import need
from d2lmgpu.machine.checks import is_list


class Table:
    """Rows of texts under the names of their columns; the first column names its row.

    Parameters
    ----------
    rows : list of dict
        For each row {column: text}, all of the same columns in the same order; one row at least.

    Raises
    ------
    FigureError
        For anything else.
    """

    def __init__(self, rows: list[dict]):
        good = is_list(rows) and len(rows) > 0 and all(map(_is_row, rows))
        need(
            good and len({tuple(row) for row in rows}) == 1,
            "rows",
            rows,
            "[{column: text, …}, …], one row at least, all of the same columns",
        )
        self.columns = tuple(rows[0])
        self.rows = [tuple(row.values()) for row in rows]

    def __repr__(self):
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join(
            "  ".join(
                text.rjust(width) if place else text.ljust(width)
                for place, (text, width) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            + "".join(f"<td>{escape(text)}</td>" for text in texts)
            + "</tr>\n"
            for name, *texts in self.rows
        )
        return (
            f'<div class="pst-scrollable-table-container"><table class="table rows">'
            f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        )


def _is_row(row) -> bool:
    texts = isinstance(row, dict) and [*row, *row.values()]
    return bool(texts) and all(isinstance(text, str) for text in texts)
