"""One version of a table's schema: fields with stable ids, keys, options; JSON as in docs/format.md, "Schema"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeAlias

import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.schema.encoding.json_document import UNDECODABLE, int64
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import column_type_of_arrow, is_nested, with_new_ids
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN
from storage_lib.schema.types.type_spelling import field_from_json, field_to_json, parse_columns, parse_type

__all__ = ["Columns", "DataField", "TableSchema", "check_schema", "new_table_schema", "typed_columns"]

SCHEMA_VERSION = 3
Columns: TypeAlias = "pa.Schema | str | Sequence[tuple[str, DataType | str]]"
"""Columns as users give them: an Arrow schema, SQL (``"id INT NOT NULL, item STRING"``), or names with types."""

MERGE_ENGINE_OPTION = "merge-engine"
VALUE_COUNT = "value-count"
_VALUE_COUNT_AS_STORED = (
    f"{VALUE_COUNT} (this table has no primary key and counts equal rows, which only the library dynamic-tables reads "
    "and writes; copy its rows into an append-only table to share them)"
)
"""Value in the schema file: engines that refuse an unknown merge engine show the option's value in their error."""
_NO_BUCKET_KEY = "; it has no bucket-key either"
"""Suffix if the schema file has an artificial bucket-key, which Java and Rust check before the merge engine."""
VALUE_COUNT_COLUMN = "_VALUE_COUNT"
"""Column of the number of equal rows, in the files of a table that counts them."""
BUCKET_KEY_OPTION = "bucket-key"
WRITE_MODE_OPTION = "write-mode"
APPEND_ONLY = "append-only"
BUCKET_UNAWARE = -1
"""Bucket count of an append table without buckets, or of a primary-key table with dynamic buckets."""
_RESERVED = (ROW_KIND_COLUMN, "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "_FILE_CHECKSUM", "rowkind")
_RESERVED_PREFIX = "_KEY_"
_TIMESTAMPS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_KEY_TIMESTAMP_DIGITS_MAX = 6


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """Version ``id`` of a table's columns, keys and options. Immutable; a change creates the next version."""

    id: int
    fields: tuple[DataField, ...]
    primary_keys: tuple[str, ...]
    partition_keys: tuple[str, ...]
    options: Mapping[str, str]
    time_millis: int
    highest_field_id: int
    comment: str | None = None
    version: int = SCHEMA_VERSION
    _by_name: Mapping[str, DataField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the fields."""
        object.__setattr__(self, "_by_name", {each.name: each for each in self.fields})

    def field(self, name: str) -> DataField:
        """Return the column of that name. Raises ``InvalidInputError`` if it does not exist."""
        try:
            return self._by_name[name]
        except KeyError:
            message = f"there is no column {name!r}; the columns are {', '.join(self._by_name)}"
            raise InvalidInputError(message) from None

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """All columns in order, with their nullability."""
        return pa.schema([pa.field(each.name, each.type.arrow, nullable=each.type.nullable) for each in self.fields])

    @cached_property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """Primary key without the partition columns; data files are sorted by it."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @cached_property
    def key_fields(self) -> tuple[DataField, ...]:
        """Fields of the trimmed primary key, in its order."""
        return tuple(self._by_name[name] for name in self.trimmed_primary_keys)

    @cached_property
    def partition_fields(self) -> tuple[DataField, ...]:
        """Fields of the partition columns, in their order."""
        return tuple(self._by_name[name] for name in self.partition_keys)

    @cached_property
    def scalar_fields(self) -> tuple[DataField, ...]:
        """Fields of the columns whose values are ordered, so that data files have bounds for them."""
        return tuple(each for each in self.fields if not is_nested(each.type))

    @cached_property
    def bucket_key_fields(self) -> tuple[DataField, ...]:
        """Columns that determine the bucket: option ``bucket-key``, else the trimmed primary key, else all columns."""
        declared = self.options.get("bucket-key")
        if declared:
            return tuple(self.field(name.strip()) for name in declared.split(","))
        return self.key_fields or self.fields

    @cached_property
    def is_append_only(self) -> bool:
        """Whether rows can only be added, as in Paimon's tables without a primary key."""
        return not self.primary_keys and not self.counts_values

    @cached_property
    def counts_values(self) -> bool:
        """Whether equal rows without a key are counted, so that they can be deleted and updated. Not in Paimon."""
        return not self.primary_keys and self.options.get(MERGE_ENGINE_OPTION) == VALUE_COUNT

    @cached_property
    def is_bucket_unaware(self) -> bool:
        """Whether rows have no particular bucket: all are in bucket 0, to which any writer may append."""
        return self.is_append_only and self.bucket_count == BUCKET_UNAWARE

    @cached_property
    def has_dynamic_buckets(self) -> bool:
        """Whether a key is assigned to a bucket when it is first written, and stays there."""
        return bool(self.primary_keys) and self.bucket_count == BUCKET_UNAWARE

    @cached_property
    def crosses_partitions(self) -> bool:
        """Whether the primary key lacks a partition column, so that an update may move a row to another partition."""
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    @cached_property
    def bucket_numbers(self) -> range:
        """Buckets of a partition; empty for dynamic buckets, which are not known in advance."""
        return range(1 if self.is_bucket_unaware else self.bucket_count)

    @cached_property
    def bucket_count(self) -> int:
        """Option ``bucket``, as stored in manifests; in schemas of versions 1 and 2 the default is 1."""
        return int(self.options.get("bucket", "1" if self.version < SCHEMA_VERSION else "-1"))

    @property
    def value_fields(self) -> tuple[DataField, ...]:
        """Every column: the value of a key is the whole row."""
        return self.fields

    def to_json(self) -> bytes:
        """Return the content of ``schema-<id>``."""
        value: dict[str, object] = {
            "version": self.version,
            "id": self.id,
            "fields": [field_to_json(each) for each in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": _stored_options(self),
        }
        if self.comment is not None:
            value["comment"] = self.comment
        value["timeMillis"] = self.time_millis
        return json.dumps(value, indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> TableSchema:
        """Parse a schema file, including those of other engines; unknown keys are ignored.

        Raises ``CorruptFileError`` if it is not a schema, ``InvalidInputError`` for unsupported column types.
        """
        try:
            value = json.loads(data)
            names = [each["name"] for each in value["fields"]]
            lost = [key for key in (*value["partitionKeys"], *value["primaryKeys"]) if key not in names]
            if lost or len({each["id"] for each in value["fields"]}) < len(names):
                message = f"unknown column {lost[0]!r}" if lost else "two columns have the same id"
                raise ValueError(message)
            version = int64(value.get("version", 1))
            return cls(
                version=version,
                id=int64(value["id"]),
                fields=tuple(field_from_json(each) for each in value["fields"]),
                highest_field_id=int64(value["highestFieldId"]),
                partition_keys=tuple(value["partitionKeys"]),
                primary_keys=tuple(value["primaryKeys"]),
                options=_options_of({str(key): str(text) for key, text in value["options"].items()}),
                comment=None if (comment := value.get("comment")) is None else str(comment),
                time_millis=int64(value.get("timeMillis", 0)),
            )
        except UNDECODABLE as error:
            message = f"this is not a table schema ({type(error).__name__}: {error}): {data[:200]!r}"
            raise CorruptFileError(message) from error


def _stored_options(schema: TableSchema) -> dict[str, str]:
    options = dict(schema.options)
    if options.get(MERGE_ENGINE_OPTION) != VALUE_COUNT:
        return options
    options[MERGE_ENGINE_OPTION] = _VALUE_COUNT_AS_STORED
    if BUCKET_KEY_OPTION not in options:
        options[MERGE_ENGINE_OPTION] += _NO_BUCKET_KEY
        names = [field.name for field in schema.fields]
        options[BUCKET_KEY_OPTION] = next((name for name in names if name not in schema.partition_keys), names[0])
    return options


def _options_of(stored: dict[str, str]) -> dict[str, str]:
    engine = stored.get(MERGE_ENGINE_OPTION, "")
    if not engine.startswith(f"{VALUE_COUNT} "):
        return stored
    options = {**stored, MERGE_ENGINE_OPTION: VALUE_COUNT}
    if engine.endswith(_NO_BUCKET_KEY):
        del options[BUCKET_KEY_OPTION]
    return options


def new_table_schema(
    columns: Columns,
    *,
    primary_keys: Sequence[str] = (),
    partition_keys: Sequence[str] = (),
    options: Mapping[str, str],
    time_millis: int,
    comment: str | None = None,
    column_comments: Mapping[str, str] | None = None,
) -> TableSchema:
    """Return version 0 of a new table's schema; primary key columns become NOT NULL.

    Raises ``InvalidInputError`` naming the column or option and the remedy.
    """
    typed = typed_columns(columns)
    _check_names([name for name, _ in typed], primary_keys, partition_keys, options)
    fields, highest_field_id = _fields_with_ids(typed, primary_keys)
    comments = column_comments or {}
    fields = tuple(replace(each, description=comments[each.name]) if each.name in comments else each for each in fields)
    schema = TableSchema(
        id=0,
        fields=fields,
        primary_keys=tuple(primary_keys),
        partition_keys=tuple(partition_keys),
        options=dict(options),
        comment=comment,
        time_millis=time_millis,
        highest_field_id=highest_field_id,
    )
    check_schema(schema)
    return schema


def check_schema(schema: TableSchema) -> None:
    """Raise ``InvalidInputError``, with the remedy, for invalid names, keys and bucket options."""
    _check_names([each.name for each in schema.fields], schema.primary_keys, schema.partition_keys, schema.options)
    _check_key_types(schema)
    _check_bucket_options(schema)
    _check_comments(schema)


def _check_comments(schema: TableSchema) -> None:
    """Refuse a comment that is not text: other readers of the schema file would fail on it."""
    comments: dict[str, object] = {f"column {each.name!r}": each.description for each in schema.fields}
    comments["the table"] = schema.comment
    for what, comment in comments.items():
        if comment is not None and not isinstance(comment, str):
            message = f"the comment of {what} is {comment!r}; it has to be text"
            raise InvalidInputError(message)


def _check_names(
    names: Sequence[str], primary_keys: Sequence[str], partition_keys: Sequence[str], options: Mapping[str, str]
) -> None:
    counts = (VALUE_COUNT_COLUMN,) if options.get(MERGE_ENGINE_OPTION) == VALUE_COUNT else ()
    _check_columns(names, reserved=(*_RESERVED, *counts, options.get("row-kind.field", ROW_KIND_COLUMN)))
    has_dynamic_buckets = options.get("bucket") == str(BUCKET_UNAWARE)
    _check_keys(names, tuple(primary_keys), tuple(partition_keys), has_dynamic_buckets=has_dynamic_buckets)


def _fields_with_ids(
    typed: Sequence[tuple[str, DataType]], primary_keys: Sequence[str]
) -> tuple[tuple[DataField, ...], int]:
    """Assign ids from 0, those of fields in a ROW right after its own; return the columns and the highest id."""
    ids = count()
    fields = []
    for name, data_type in typed:
        own_id = next(ids)
        numbered = with_new_ids(data_type, lambda: next(ids))
        fields.append(DataField(id=own_id, name=name, type=numbered.not_null() if name in primary_keys else numbered))
    return tuple(fields), next(ids) - 1


def typed_columns(columns: Columns) -> list[tuple[str, DataType]]:
    """Return names and types. Raises ``InvalidInputError``, naming the column, for an unsupported Arrow type."""
    if isinstance(columns, str):
        return parse_columns(columns)
    if not isinstance(columns, pa.Schema):
        return [(name, parse_type(of) if isinstance(of, str) else of) for name, of in columns]
    typed = []
    for each in columns:
        try:
            typed.append((each.name, column_type_of_arrow(each.type, nullable=each.nullable)))
        except InvalidInputError as error:
            message = f"column {each.name!r}: {error}"
            raise InvalidInputError(message) from error
    return typed


def _check_columns(names: Sequence[str], reserved: Sequence[str]) -> None:
    if not names:
        message = "a table needs at least one column"
        raise InvalidInputError(message)
    for name in names:
        if not name or name in reserved or name.startswith(_RESERVED_PREFIX):
            message = (
                f"column name {name!r} is empty or reserved ({', '.join(reserved)}, {_RESERVED_PREFIX}*); rename it"
            )
            raise InvalidInputError(message)
        if names.count(name) > 1:
            message = f"column {name!r} is declared twice; rename or drop one"
            raise InvalidInputError(message)
    by_lower: dict[str, str] = {}
    for name in names:
        other = by_lower.setdefault(name.lower(), name)
        if other != name:
            message = f"columns {other!r} and {name!r} differ in case only, which SQL does not see; rename one"
            raise InvalidInputError(message)


def _check_keys(
    names: Sequence[str], primary_keys: Sequence[str], partition_keys: Sequence[str], *, has_dynamic_buckets: bool
) -> None:
    for role, keys in (("primary key", primary_keys), ("partition", partition_keys)):
        for name in keys:
            if name not in names:
                message = f"{role} column {name!r} is not a column; the columns are {', '.join(names)}"
                raise InvalidInputError(message)
            if list(keys).count(name) > 1:
                message = f"{role} column {name!r} is named twice; drop one"
                raise InvalidInputError(message)
    if not primary_keys:
        if set(partition_keys) == set(names):
            message = f"every column is a partition column ({', '.join(partition_keys)}); partition by fewer"
            raise InvalidInputError(message)
        return
    outside = [name for name in partition_keys if name not in primary_keys]
    if outside and not has_dynamic_buckets:
        message = (
            f"partition column {outside[0]!r} is not in the primary key ({', '.join(primary_keys)}), so a row could "
            f"move between partitions unseen; add it to the primary key, or declare bucket={BUCKET_UNAWARE}: dynamic "
            "buckets follow a row to another partition"
        )
        raise InvalidInputError(message)
    if set(primary_keys) <= set(partition_keys):
        message = (
            f"the primary key ({', '.join(primary_keys)}) consists of partition columns only, so a partition "
            "could hold one row only; add a column to the primary key or partition by fewer columns"
        )
        raise InvalidInputError(message)


def _check_key_types(schema: TableSchema) -> None:
    for each in (*schema.key_fields, *schema.partition_fields):
        _refuse_nested(each, "key or partition column")
        # Keys are compared as Python values, which have microsecond resolution.
        if each.type.root in _TIMESTAMPS and (each.type.precision or 0) > _KEY_TIMESTAMP_DIGITS_MAX:
            message = (
                f"column {each.name!r} is {each.type}; a key or partition column holds {_KEY_TIMESTAMP_DIGITS_MAX} "
                f"digits of a second at most. Make it TIMESTAMP({_KEY_TIMESTAMP_DIGITS_MAX})"
            )
            raise InvalidInputError(message)
    for each in schema.partition_fields:
        if each.type.root in (TypeRoot.BINARY, TypeRoot.VARBINARY):
            message = f"partition column {each.name!r} is {each.type}, which can't name a directory; make it a STRING"
            raise InvalidInputError(message)


def _check_bucket_options(schema: TableSchema) -> None:
    count = schema.options.get("bucket", "")
    if schema.is_append_only and schema.options.get(WRITE_MODE_OPTION) == APPEND_ONLY:
        _check_bucket_key_of_append_table(schema, count)
        if count == str(BUCKET_UNAWARE):
            return
    if schema.primary_keys and count == str(BUCKET_UNAWARE):
        _check_dynamic_buckets(schema)
        return
    if not count.isascii() or not count.isdigit() or int(count) < 1:
        message = f"option bucket is {count!r}; set it to a number of at least 1"
        raise InvalidInputError(message)
    for each in schema.bucket_key_fields if "bucket-key" in schema.options else ():
        _refuse_nested(each, "bucket key")
    for each in schema.bucket_key_fields:
        if "bucket-key" in schema.options and schema.primary_keys and each.name not in schema.trimmed_primary_keys:
            message = (
                f"option bucket-key names {each.name!r}, which is not in the primary key without its partition columns "
                f"({', '.join(schema.trimmed_primary_keys)}); use only these"
            )
            raise InvalidInputError(message)


def _check_dynamic_buckets(schema: TableSchema) -> None:
    """Apply Paimon's rules for dynamic buckets."""
    if "bucket-key" in schema.options:
        message = (
            f"option bucket-key goes with a fixed number of buckets, not with bucket={BUCKET_UNAWARE}; leave one of "
            "them out"
        )
        raise InvalidInputError(message)
    for option in ("sequence.field", "ignore-delete") if schema.crosses_partitions else ():
        if schema.options.get(option, "false").strip().lower() != "false":
            message = (
                f"option {option} can't be had where the primary key ({', '.join(schema.primary_keys)}) lacks a "
                f"partition column ({', '.join(schema.partition_keys)}): a row that moves to another partition is "
                "deleted in the one before. Add the column to the primary key, or leave the option out"
            )
            raise InvalidInputError(message)
    option = "partial-update.remove-record-on-sequence-group"
    if schema.crosses_partitions and schema.options.get(option, "").strip():
        message = (
            f"option {option} can't be had where the primary key ({', '.join(schema.primary_keys)}) lacks a partition "
            f"column ({', '.join(schema.partition_keys)}): whether a deletion removes a row, so that the next one may "
            "go to another partition, is decided after rows have been given their partitions. Add the column to the "
            "primary key, or leave the option out"
        )
        raise InvalidInputError(message)


def _refuse_nested(each: DataField, role: str) -> None:
    if is_nested(each.type):
        message = (
            f"column {each.name!r} is {each.type}, which has no order and no hash, so it can't be a {role}; use a "
            "column of a scalar type (a field of it in a column of its own, for instance)"
        )
        raise InvalidInputError(message)


def _check_bucket_key_of_append_table(schema: TableSchema, count: str) -> None:
    """Apply Paimon's rules for the bucket key of an append-only table."""
    declared = schema.options.get("bucket-key", "")
    if count == str(BUCKET_UNAWARE) and declared:
        message = (
            f"option bucket-key is {declared!r}, but with bucket={BUCKET_UNAWARE} the rows of an append-only table go "
            "to no bucket in particular; set bucket to a number of at least 1, or leave bucket-key out"
        )
        raise InvalidInputError(message)
    if count != str(BUCKET_UNAWARE) and not declared:
        message = (
            f"option bucket is {count!r}, but an append-only table has no key to distribute its rows by; name columns "
            f"in bucket-key, or leave bucket out ({BUCKET_UNAWARE}: no bucket in particular)"
        )
        raise InvalidInputError(message)
    inside = [field.name for field in schema.bucket_key_fields if field.name in schema.partition_keys]
    if declared and inside:
        message = (
            f"option bucket-key names the partition column {inside[0]!r}, which is the same in all of a partition; "
            "name other columns"
        )
        raise InvalidInputError(message)
