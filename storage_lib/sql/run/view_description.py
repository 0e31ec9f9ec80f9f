"""What DESCRIBE and SHOW CREATE show of a view that the catalog stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.sql.definition.create_text import spelled
from storage_lib.sql.query.query_runner import view_frame
from storage_lib.sql.query.view_columns import described_columns
from storage_lib.sql.text.query_tables import quoted

if TYPE_CHECKING:
    from storage_lib.catalog.views.view import View
    from storage_lib.sql.state.session_state import SessionState


def view_columns(state: SessionState, view: View) -> list[tuple[str | None, ...]]:
    """Return name, type, nullability, role and comment of each column of a view, as DESCRIBE shows those of tables."""
    return described_columns(view, view_frame(state, view))


def create_view_text(view: View) -> str:
    """Return the CREATE VIEW statement of a view."""
    name = ".".join(quoted(part) for part in view.name.split("."))
    words = [f"CREATE VIEW {name}"]
    if view.columns:
        comments = view.column_comments
        columns = [
            quoted(each) + (f" COMMENT {spelled(comments[each])}" if each in comments else "") for each in view.columns
        ]
        words.append(f"({', '.join(columns)})")
    words += [] if view.comment is None else [f"COMMENT {spelled(view.comment)}"]
    return f"{' '.join(words)} AS\n{view.query}"


def _column(name: str, comment: str | None) -> str:
    return quoted(name) if comment is None else f"{quoted(name)} COMMENT {spelled(comment)}"
