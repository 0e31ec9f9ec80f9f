"""Representations of a table for Python shells and notebooks, built from the schema in memory without a read."""

from __future__ import annotations

from html import escape

from storage_lib.io.table_directory.table_paths import MAIN_BRANCH
from storage_lib.schema.table_schema import TableSchema

__all__ = ["shown_schema", "shown_table"]


def shown_table(name: str, branch: str, schema: TableSchema) -> str:
    """Return one line: name, branch other than main, number of columns, primary key, partition columns."""
    parts = [f"{len(schema.fields)} columns"]
    if schema.primary_keys:
        parts.append(f"primary key ({', '.join(schema.primary_keys)})")
    if schema.partition_keys:
        parts.append(f"partitioned by ({', '.join(schema.partition_keys)})")
    of_branch = "" if branch == MAIN_BRANCH else f" branch {branch}"
    return f"<DynamicTable {name}{of_branch}: {', '.join(parts)}>"


def shown_schema(title: str, schema: TableSchema) -> str:
    """Return HTML: ``title`` above a table with each column's name, type and comment."""
    rows = "".join(
        f"<tr><td>{escape(field.name)}</td><td>{escape(str(field.type))}</td>"
        f"<td>{escape(field.description or '')}</td></tr>"
        for field in schema.fields
    )
    head = "<tr><th>column</th><th>type</th><th>comment</th></tr>"
    return f"<p>{escape(title)}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"
