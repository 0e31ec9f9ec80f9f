"""Layout of a table: the primary key by which rows are merged, and the buckets of its files and log.

An ALTER that changes the layout rewrites the table under a schema that begins a new layout, numbered by the schema's
id (docs/decisions/0024). The schema takes effect with its first snapshot; until then, the schema that it names as its
predecessor remains in force. So the snapshot is the commit, as for all writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import OWN_PREFIX, canonical_key
from storage_lib.schema.table_schema import (
    APPEND_ONLY,
    BUCKET_UNAWARE,
    MERGE_ENGINE_OPTION,
    VALUE_COUNT,
    WRITE_MODE_OPTION,
    TableSchema,
    check_schema,
)

LAYOUT_OPTIONS = ("bucket", "bucket-key")
"""Options that determine the location of a row."""

TOPIC_OPTION = "log.kafka.topic"
_LAYOUT = f"{OWN_PREFIX}layout"
_BEFORE = f"{OWN_PREFIX}layout-before"
_EARLIER_TOPICS = f"{OWN_PREFIX}earlier-topics"
_TOPIC_VERSION = re.compile(r"-v[0-9]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """A new primary key (empty: unchanged) and new values of ``LAYOUT_OPTIONS`` (None: the default)."""

    primary_key: tuple[str, ...] = ()
    options: Mapping[str, str | None] | None = None


def checked_layout_options(table: str, options: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the options by canonical key. Raises ``InvalidInputError`` for one not in ``LAYOUT_OPTIONS``."""
    checked = {canonical_key(key): value for key, value in options.items()}
    for key in checked:
        if key not in LAYOUT_OPTIONS:
            message = (
                f"table {table}: option {key} does not affect the layout, so a rewrite can't change it; a rewrite "
                f"changes {' and '.join(LAYOUT_OPTIONS)}"
            )
            raise InvalidInputError(message)
    return checked


def layout_of(schema: TableSchema) -> int:
    """Return the number of the layout of ``schema``: the id of the schema that began it."""
    return int(schema.options.get(_LAYOUT, "0"))


def begins_layout(schema: TableSchema) -> bool:
    """Whether ``schema`` begins a layout; it is then in force only once a snapshot uses it."""
    return _LAYOUT in schema.options and layout_of(schema) == schema.id


def schema_id_before(schema: TableSchema) -> int:
    """Return the id of the schema before the one that begins a layout; the rewrite read the table under it."""
    return int(schema.options[_BEFORE])


def has_same_rows(one: TableSchema, other: TableSchema) -> bool:
    """Whether files of both schemas have the same rows, apart from buckets and renamed columns."""
    return (_key_ids(one), one.counts_values) == (_key_ids(other), other.counts_values)


def _key_ids(schema: TableSchema) -> tuple[int, ...]:
    """Return the ids of the key columns, which renames do not change."""
    return tuple(schema.field(name).id for name in schema.primary_keys)


def topics_of(schemas: Sequence[TableSchema]) -> tuple[str, ...]:
    """Return every topic that a table has had under any of its schemas, oldest first."""
    topics: dict[str, None] = {}
    for schema in schemas:
        topics |= dict.fromkeys(earlier_topics(schema))
        if TOPIC_OPTION in schema.options:
            topics[schema.options[TOPIC_OPTION]] = None
    return tuple(topics)


def earlier_topics(schema: TableSchema) -> tuple[str, ...]:
    """Return the topics of earlier logs and of layouts that never took effect."""
    topics = schema.options.get(_EARLIER_TOPICS, "")
    return tuple(topics.split(",")) if topics else ()


def with_layout(
    schema: TableSchema, change: LayoutChange, *, schema_id: int, topics: Sequence[str], time_millis: int
) -> TableSchema:
    """Return ``schema`` with another layout as version ``schema_id``, or ``schema`` itself if nothing changes.

    ``topics`` are all topics that the table has had; the log restarts in a new topic. Raises ``InvalidInputError``
    for an invalid layout.
    """
    primary_keys = change.primary_key or schema.primary_keys
    options = dict(schema.options)
    for key, value in (change.options or {}).items():
        options.pop(key, None)
        if value is not None:
            options[key] = value
        elif key == "bucket":
            options[key] = str(BUCKET_UNAWARE) if schema.is_append_only else "1"
    if primary_keys != schema.primary_keys:
        options = _options_with_key(schema, options)
    fields = tuple(
        replace(each, type=each.type.not_null()) if each.name in primary_keys else each for each in schema.fields
    )
    changed = replace(schema, primary_keys=primary_keys, fields=fields, options=options)
    if changed == schema:
        return schema
    topic = schema.options.get(TOPIC_OPTION)
    if topic is not None:
        options[TOPIC_OPTION] = f"{_TOPIC_VERSION.sub('', topic) if layout_of(schema) else topic}-v{schema_id + 1}"
    options |= {_LAYOUT: str(schema_id), _BEFORE: str(schema.id)}
    if topics:
        options[_EARLIER_TOPICS] = ",".join(topics)
    changed = replace(changed, id=schema_id, options=options, time_millis=max(time_millis, schema.time_millis))
    check_schema(changed)
    return changed


def as_before(schema: TableSchema, *, schema_id: int, topics: Sequence[str], time_millis: int) -> TableSchema:
    """Return ``schema`` as version ``schema_id``, to follow a schema whose layout never took effect."""
    options = dict(schema.options)
    others = [topic for topic in topics if topic != schema.options.get(TOPIC_OPTION)]
    if others:
        options[_EARLIER_TOPICS] = ",".join(others)
    return replace(schema, id=schema_id, options=options, time_millis=max(time_millis, schema.time_millis))


def _options_with_key(schema: TableSchema, options: dict[str, str]) -> dict[str, str]:
    """Drop the options that apply only to tables without a primary key."""
    if schema.primary_keys:
        message = (
            f"the table has the primary key ({', '.join(schema.primary_keys)}) already, by which its rows were merged, "
            "so it can't have another; CREATE TABLE another one, and INSERT the rows of this one into it"
        )
        raise InvalidInputError(message)
    without_key = {
        (MERGE_ENGINE_OPTION, VALUE_COUNT),
        (WRITE_MODE_OPTION, APPEND_ONLY),
        ("bucket", str(BUCKET_UNAWARE)),
    }
    return {"bucket": "1", **{key: value for key, value in options.items() if (key, value) not in without_key}}
