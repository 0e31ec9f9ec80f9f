"""Output of statements' results, as text or as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from storage_lib.cli.output import note, print_json, print_rows, python_rows, waiting

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.io.environment import Clock
    from storage_lib.sql import Result


class ResultPrinter:
    """Prints results as they arrive, or with ``as_json`` one document at the end.

    The document holds the result of a single statement, or a list of results. ``rows_max`` limits the rows of a query
    that are computed and shown in a terminal (None: no limit); JSON always contains all rows.
    """

    def __init__(self, *, as_json: bool, rows_max: int | None = None, shows_time: bool = False) -> None:
        from storage_lib.io.environment import SystemClock

        self._as_json = as_json
        self._rows_max = rows_max
        self._clock: Clock = SystemClock()
        self._shows_time = shows_time
        self._documents: list[Any] = []

    def show_time(self, *, is_on: bool) -> None:
        """Set whether to show how long each query took."""
        self._shows_time = is_on

    def add(self, result: Result) -> None:
        """Print one result, or collect it for JSON; this runs a query."""
        started = self._clock.monotonic()
        with waiting("running"):
            rows = self._rows(result) if result.has_rows else None
        if self._as_json:
            self._documents.append(python_rows(rows) if rows is not None else _facts(result))
            return
        if rows is not None:
            is_cut = self._rows_max is not None and rows.num_rows > self._rows_max
            shown = rows.slice(0, self._rows_max) if is_cut else rows
            interactive = self._rows_max is not None
            print_rows(python_rows(shown), as_json=False, columns=shown.column_names, null="NULL", may_page=interactive)
            time = f" in {self._clock.monotonic() - started:.2f} s" if self._shows_time else ""
            note(f"{shown.num_rows} row{'' if shown.num_rows == 1 else 's'}{time}")
            if is_cut:
                note("there are more rows; add LIMIT, or run the statement with `dynamic-table sql -e` to see them all")
        if result.message:
            note(result.message)

    def _rows(self, result: Result) -> pa.Table:
        if self._as_json or self._rows_max is None or result.dataframe is None or result.dataframe.isStreaming:
            return result.to_arrow()
        return replace(result, dataframe=result.dataframe.limit(self._rows_max + 1)).to_arrow()

    def finish(self) -> None:
        """Print the JSON document of the results collected so far."""
        if self._as_json and self._documents:
            print_json(self._documents[0] if len(self._documents) == 1 else self._documents)
        self._documents = []


def _facts(result: Result) -> dict[str, Any]:
    return {"message": result.message, "snapshot": result.snapshot_id, "rows": result.row_count}
