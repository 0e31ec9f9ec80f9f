"""What statements answer, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage_lib.cli.output import note, print_json, print_rows, python_rows

if TYPE_CHECKING:
    from storage_lib.sql import Result


class ResultPrinter:
    """Prints results as they come; with ``as_json`` one document at the end: of one statement its rows, or a list."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._documents: list[Any] = []

    def add(self, result: Result) -> None:
        """Show one result; a query is computed now."""
        rows = result.to_arrow() if result.has_rows else None
        if self._as_json:
            self._documents.append(python_rows(rows) if rows is not None else _facts(result))
            return
        if rows is not None:
            print_rows(python_rows(rows), as_json=False, columns=rows.column_names)
            note(f"{rows.num_rows} row{'' if rows.num_rows == 1 else 's'}")
        if result.message:
            note(result.message)

    def finish(self) -> None:
        """Print what is left to be printed."""
        if self._as_json and self._documents:
            print_json(self._documents[0] if len(self._documents) == 1 else self._documents)
        self._documents = []


def _facts(result: Result) -> dict[str, Any]:
    return {"message": result.message, "snapshot": result.snapshot_id, "rows": result.row_count}
