"""Columns and key of a new table, from the first record of its topic that carries a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.external.source_metadata import metadata_of
from storage_lib.schema.options.source_options import METADATA

if TYPE_CHECKING:
    from storage_lib.log_store.codec.record_log import RecordLog
    from storage_lib.schema.types.data_types import DataType

_NO_COLUMN = pa.schema([("__no_column_of_a_source", pa.string())])
"""What the first records are decoded for: only their schemas matter."""

_BATCHES = 20
"""How much of a topic is searched for a record with a schema; the first has one, unless it is a deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstColumns:
    """Columns of a source in their order, with the types of a table's columns, and the names of its key columns.

    ``comments`` of columns, where the schema has them.
    """

    columns: tuple[tuple[str, DataType], ...]
    key: tuple[str, ...]
    comments: Mapping[str, str]


def first_columns(options: Mapping[str, str], log: RecordLog) -> FirstColumns | None:
    """Return what the first records of a topic tell; None if it has no record with a row yet.

    Raises ``InvalidInputError`` if its records don't carry schemas.
    """
    topic = ExternalTopic.parse({key: text for key, text in options.items() if key != METADATA}, _NO_COLUMN)
    captured = topic.captured(log)
    start = log.earliest_offsets()
    reasons: list[str] = []
    for records in islice(log.records(start, log.latest_offsets()), _BATCHES):
        if not len(records.columns):
            continue
        changes = captured.decoder.captured(records.columns)
        # A TRUNCATE also has a schema, but no key; what comes before the first schema is refused when it is read.
        of_rows = {*changes.record_indices.tolist(), *(each.record_index for each in changes.refusals)}
        begin = min((each.record_index for each in changes.schemas), default=len(records.columns))
        place = min((each for each in of_rows if each >= begin), default=-1)
        first = next((each for each in reversed(changes.schemas) if each.record_index <= place), None)
        if first is not None:
            key = records.columns.keys[place].as_py()
            names = () if key is None else topic.key_columns(key)
            metadata = metadata_of(options.get(METADATA))
            columns = {name: of for name, of in first.columns.items() if name not in metadata}
            typed = [(name, table_type(of)) for name, of in columns.items()]
            return FirstColumns(
                columns=(*typed, *((name, table_type(of.written)) for name, of in metadata.items())),
                key=_checked(topic.name, names, first.columns),
                comments={name: of.comment for name, of in columns.items() if of.comment},
            )
        if len(changes.rows) or changes.refusals:
            reasons.append(f": {changes.refusals[0].reason}" if changes.refusals else "")
    if not reasons:
        return None
    message = (
        f"topic {topic.name!r}: its records carry no schema of a row, so nobody can tell the columns of a new table"
        f"{reasons[0]}. Create the table, exclude the topic, or let the connector write schemas (JsonConverter with "
        "schemas.enable=true and format debezium-json-schema, or Avro with debezium-avro)"
    )
    raise InvalidInputError(message)


def _checked(topic: str, key: tuple[str, ...], columns: Mapping[str, object]) -> tuple[str, ...]:
    missing = [name for name in key if name not in columns]
    if missing:
        message = (
            f"topic {topic!r}: column {missing[0]!r} of the records' key is not one of the row ({', '.join(columns)}). "
            "Create the table, with a key that the rows have"
        )
        raise InvalidInputError(message)
    return key
