"""Derive the kind of a new table from its declaration: fill in defaults, refuse contradictions."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.field_options import DEFAULT_VALUE, PREFIX
from storage_lib.schema.options.table_options import MergeEngine, TableOptions, WriteMode
from storage_lib.schema.table_schema import BUCKET_UNAWARE, MERGE_ENGINE_OPTION, VALUE_COUNT


def with_kind_options(name: str, options: Mapping[str, str], *, has_primary_key: bool) -> dict[str, str]:
    """Return the options with the defaults of the table's kind filled in.

    Raises ``InvalidInputError`` for options that contradict the table's kind.
    """
    _refuse_what_is_declared_elsewhere(name, options)
    _refuse_functions_without_engine(name, options)
    is_append_only = TableOptions.parse(options).write_mode is WriteMode.APPEND_ONLY
    merge_engine = options.get(MERGE_ENGINE_OPTION)
    if has_primary_key:
        if merge_engine == VALUE_COUNT:
            message = (
                f"table {name} has a primary key, but option merge-engine={VALUE_COUNT} is for tables without; leave "
                "it out"
            )
            raise InvalidInputError(message)
        if is_append_only:
            message = (
                f"table {name} has a primary key, so later rows replace earlier ones, but option write-mode says "
                "append-only; leave one of them out"
            )
            raise InvalidInputError(message)
        return {"bucket": "1", **_of_deletion_vectors(name, options), **options}
    if TableOptions.parse(options).deletion_vectors_enabled:
        message = (
            f"table {name} has no primary key, so deletion-vectors.enabled has no old versions to mark; leave it out"
        )
        raise InvalidInputError(message)
    if not is_append_only:
        if merge_engine not in (None, VALUE_COUNT):
            message = (
                f"table {name} has no primary key, so option merge-engine={merge_engine} has no versions to merge: "
                "rows are counted. Leave it out, or declare primary_key=[...]"
            )
            raise InvalidInputError(message)
        return {"bucket": "1", **options, MERGE_ENGINE_OPTION: VALUE_COUNT}
    if merge_engine is not None:
        message = f"table {name} is append-only and merges nothing; leave option merge-engine out"
        raise InvalidInputError(message)
    return {"bucket": str(BUCKET_UNAWARE), **options}


def _refuse_what_is_declared_elsewhere(name: str, options: Mapping[str, str]) -> None:
    """Refuse keys given as options, as other engines accept them: ignoring them would change the table's kind."""
    for key, argument in (("primary-key", "primary_key=[...]"), ("partition", "partition_by=[...]")):
        if key in options:
            message = f"table {name}: option {key} can't be used here; leave it out and give {argument}"
            raise InvalidInputError(message)


def _refuse_functions_without_engine(name: str, options: Mapping[str, str]) -> None:
    """Refuse aggregate functions that no merge engine would apply: they would be ignored silently."""
    if TableOptions.parse(options).merge_engine in (MergeEngine.AGGREGATION, MergeEngine.PARTIAL_UPDATE):
        return
    idle = [key for key in sorted(options) if key.startswith(PREFIX) and not key.endswith(DEFAULT_VALUE)]
    if idle:
        message = (
            f"table {name}: option {idle[0]} does nothing without merge-engine=aggregation or partial-update; add one "
            "of them, or leave it out"
        )
        raise InvalidInputError(message)


def _of_deletion_vectors(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return defaults with which batch reads see committed rows before a compaction writes deletion vectors."""
    parsed = TableOptions.parse(options)
    if not parsed.deletion_vectors_enabled:
        return {}
    if parsed.merge_engine is MergeEngine.FIRST_ROW:
        message = (
            f"table {name}: deletion-vectors.enabled does nothing with merge-engine=first-row, whose rows are never "
            "replaced; leave it out"
        )
        raise InvalidInputError(message)
    if parsed.others.get("deletion-vectors.bitmap64", "false").strip().lower() != "false":
        message = (
            f"table {name}: 64-bit deletion vectors can be read but not written; leave deletion-vectors.bitmap64 out"
        )
        raise InvalidInputError(message)
    return {"deletion-vectors.merge-on-read": "true"}
