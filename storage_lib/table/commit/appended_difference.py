"""Decides whether a table's content can be replaced by appending the difference to the new content."""

from __future__ import annotations

from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.table_schema import TableSchema


def why_buckets_differ(schema: TableSchema) -> str | None:
    """Return the reason why a key may be in different buckets in two snapshots; None if it cannot."""
    return "a key may be in another of its dynamic buckets than it was" if schema.has_dynamic_buckets else None


def why_no_difference_can_be_appended(schema: TableSchema, options: TableOptions) -> str | None:  # noqa: PLR0911  one line a reason
    """Return the reason why an appended difference would not replace the table's content; None if it would."""
    if schema.is_append_only:
        return "it is append-only"
    if schema.counts_values:
        return None
    if schema.crosses_partitions:
        return "its primary key lacks a partition column, so the old and the new row of a key may be in two partitions"
    if options.merge_engine != "deduplicate":
        return f"its merge engine is {options.merge_engine}, which merges appended rows with the stored ones"
    if options.sequence_field:
        return "its sequence.field, not the order of commits, decides which row wins"
    if options.ignore_delete:
        return "it ignores deletions (ignore-delete)"
    return None
