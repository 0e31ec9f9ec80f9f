"""Options that CREATE and ALTER refuse as unsupported; existing tables with them can still be read."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.schema.evolution.variant_refusals import refuse_variants
from storage_lib.schema.options.external_paths import PATHS_OPTION, refuse_idle_directories
from storage_lib.schema.options.table_options import (
    ChangelogMode,
    ChangelogProducer,
    LogSystem,
    MergeEngine,
    TableOptions,
)
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.nested_types import has_nanoseconds

_IDLE = {
    "path": "a table lies below its warehouse, by its name; open a catalog on the directory that you want",
}


def refuse_unsupported(table: str, schema: TableSchema, *, before: TableSchema | None = None) -> None:
    """Refuse unsupported options and columns of ``schema`` that ``before`` does not have.

    Raises ``InvalidInputError`` naming the option or the column and the remedy.
    """
    had = {} if before is None else before.options
    _refuse_options(table, schema, had)
    if schema.options.get(PATHS_OPTION) != had.get(PATHS_OPTION):
        refuse_idle_directories(table, schema.options)
    refuse_variants(table, schema, before)
    for key, remedy in _IDLE.items():
        value = schema.options.get(key)
        if value not in (None, "none", had.get(key)):
            message = f"table {table}: option {key}={value} would do nothing here: {remedy}"
            raise InvalidInputError(message)
    there = set() if before is None else {(each.id, each.type) for each in before.fields}
    for field in schema.fields:
        if (field.id, field.type) not in there and has_nanoseconds(field.type.arrow):
            message = (
                f"table {table}: column {field.name!r} is {field.type}, but other engines would cut it to "
                'microseconds, so no row of it could be written; declare it TIMESTAMP(6), pa.timestamp("us")'
            )
            raise InvalidInputError(message)


def _refuse_options(table: str, schema: TableSchema, before: Mapping[str, str]) -> None:
    options = TableOptions.parse(schema.options)
    had = TableOptions.parse(before)
    if options.changelog_producer is not had.changelog_producer:
        _refuse_producer(table, schema, options)
    if before and schema.primary_keys and options.looks_up is not had.looks_up:
        _refuse_looking_up_from_now_on(table, options)
    if schema.primary_keys:
        _refuse_old_rows_without_log(table, options, had)
    modes = tuple(ChangelogMode) if schema.primary_keys else (ChangelogMode.AUTO, ChangelogMode.ALL)
    for key, value, was, only in (
        ("log.changelog-mode", options.log_changelog_mode, had.log_changelog_mode, modes),
        (
            "metadata.stats-mode",
            options.metadata_stats_mode,
            had.metadata_stats_mode,
            (TableOptions.metadata_stats_mode,),
        ),
    ):
        if value not in only and value != was:
            allowed = " or ".join(str(each) for each in only if each) or "nothing: leave it out"
            message = f"table {table}: option {key}={value} is not supported by this version yet; use {allowed}"
            raise InvalidInputError(message)


def _refuse_producer(table: str, schema: TableSchema, options: TableOptions) -> None:
    """Refuse changelog producers that Paimon refuses as well."""
    producer = options.changelog_producer
    if producer is ChangelogProducer.NONE:
        return
    reason = None
    if not schema.primary_keys:
        reason = "is for tables with a primary key; leave it out"
    elif options.merge_engine is MergeEngine.FIRST_ROW and producer is not ChangelogProducer.LOOKUP:
        reason = "does not go with merge-engine=first-row; use lookup, or leave it out"
    elif options.deletion_vectors_enabled and producer is ChangelogProducer.FULL_COMPACTION:
        reason = "does not go with deletion-vectors.enabled; use lookup or input"
    if reason is not None:
        message = f"table {table}: option changelog-producer={producer} {reason}"
        raise InvalidInputError(message)


def _refuse_looking_up_from_now_on(table: str, options: TableOptions) -> None:
    """Refuse to switch lookup: rows above level 0 are complete only if every compaction looked up deeper levels."""
    if options.newest_wins:
        return
    message = (
        f"table {table}: changelog-producer={ChangelogProducer.LOOKUP} and force-lookup can't be set or taken away "
        "later where versions of a key are merged (merge-engine, sequence.field): some of the rows there would be "
        "counted twice or not at all. Use changelog-producer=full-compaction or input, or create a new table"
    )
    raise InvalidInputError(message)


def _refuse_old_rows_without_log(table: str, options: TableOptions, had: TableOptions) -> None:
    if options.log_changelog_mode is not ChangelogMode.ALL or had.log_changelog_mode is ChangelogMode.ALL:
        return
    if options.effective_log_system is LogSystem.NONE:
        message = (
            f"table {table}: option log.changelog-mode=all says what the log holds, but log.system=none; leave it out, "
            "or declare log.system=kafka"
        )
        raise InvalidInputError(message)
