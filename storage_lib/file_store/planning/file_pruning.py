"""Pruning: partitions, buckets, manifests and files that may have rows matching a filter; pure functions.

It is conservative: a skipped file has no matching row, and no version of a row that hides a matching one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, SimpleStats
from storage_lib.file_store.data_file.file_checksum import checksum_in
from storage_lib.file_store.kind.file_grouping import FileGrouping
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta
from storage_lib.schema.encoding.binary_row import decode_row
from storage_lib.schema.evolution.evolved_stats import evolved_stats
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.column_stats import ColumnStats, decode_stats
from storage_lib.schema.filter.comparisons import Equal, In
from storage_lib.schema.filter.predicate import And, Predicate, both
from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.schema.table_schema import DataField, TableSchema

_BUCKET_KEYS_MAX = 1000
"""A filter with more keys than this reads every bucket."""


class FilePruning:
    """Prepared filter. ``predicate`` may use all columns, ``partition_filter`` only partition columns.

    ``partitions`` (serialized) and ``buckets`` narrow it further; None means all.
    """

    def __init__(
        self,
        *,
        schemas: SchemaVersions,
        grouping: FileGrouping,
        partition_filter: Predicate | None = None,
        predicate: Predicate | None = None,
        buckets: Collection[int] | None = None,
        partitions: Collection[bytes] | None = None,
    ) -> None:
        self._schema = schemas.current
        self._schemas = schemas
        self._grouping = grouping
        self._buckets = buckets
        self._partitions = partitions
        self._on_values = predicate
        self._on_keys = _restricted(predicate, self._schema.key_fields)
        self._on_partitions = both(partition_filter, _restricted(predicate, self._schema.partition_fields))
        self._buckets_of_count: dict[int, frozenset[int] | None] = {}

    def manifest_may_match(self, manifest: ManifestFileMeta) -> bool:
        """Return whether a manifest may have matching partitions and buckets, by its bounds in the manifest list."""
        if self._partitions is not None and len(self._partitions) == 0:
            return False
        low, high = manifest.min_bucket, manifest.max_bucket
        if self._buckets is not None and not any(_between(low, bucket, high) for bucket in self._buckets):
            return False
        fields = self._schema.partition_fields
        if not fields or (self._on_partitions is None and self._partitions is None):
            return True
        stats = decode_stats(manifest.partition_stats, fields, manifest.num_entries)
        if self._on_partitions is not None and not self._on_partitions.may_match(stats):
            return False
        if self._partitions is None:
            return True
        return any(_within(decode_row(each, [f.type for f in fields]), fields, stats) for each in self._partitions)

    def matching_partitions(self, partitions: Iterable[bytes]) -> set[bytes]:
        """Return exactly the matching partitions."""
        wanted = list(partitions) if self._partitions is None else [p for p in partitions if p in self._partitions]
        if self._on_partitions is None or not wanted:
            return set(wanted)
        fields = self._schema.partition_fields
        types = [field.type for field in fields]
        columns = list(zip(*(decode_row(partition, types) for partition in wanted), strict=True))
        batch = pa.RecordBatch.from_arrays(
            [pa.array(column, field.type.arrow) for column, field in zip(columns, fields, strict=True)],
            names=[field.name for field in fields],
        )
        mask = self._on_partitions.mask(batch).to_pylist()
        return {partition for partition, matches in zip(wanted, mask, strict=True) if matches}

    def bucket_may_match(self, bucket: int, total_buckets: int) -> bool:
        """Return whether rows of this bucket may match in a partition written with ``total_buckets``."""
        if self._buckets is not None and bucket not in self._buckets:
            return False
        if total_buckets not in self._buckets_of_count:
            self._buckets_of_count[total_buckets] = self._buckets_of_keys(total_buckets)
        fixed = self._buckets_of_count[total_buckets]
        return fixed is None or bucket in fixed

    def files_that_may_match(self, entries: Sequence[ManifestEntry]) -> Sequence[ManifestEntry]:
        """Return those files of one bucket that have to be read, in the given order; ``entries`` are all its files.

        Bounds of keys apply to each file alone. Bounds of values only apply to a file that hides no row of another: an
        older version of a row may match when its newest one, in a skipped file, does not.
        """
        if self._on_values is None:
            return entries
        found = [entry for entry in entries if self._keys_may_match(entry.file)]
        not_values = frozenset(field.name for field in (*self._schema.key_fields, *self._schema.partition_fields))
        if self._on_values.columns <= not_values:
            return found  # the predicate uses no value columns
        independent = {file.identity for file in self._grouping.independent([entry.file for entry in entries])}
        return [
            entry for entry in found if entry.file.identity not in independent or self._values_may_match(entry.file)
        ]

    def _buckets_of_keys(self, total_buckets: int) -> frozenset[int] | None:
        """Return the buckets of the keys that the predicate names one by one; None if it does not name them."""
        if self._on_values is None or total_buckets < 1:
            return None
        fields = self._schema.bucket_key_fields
        # 0.0 and -0.0 are equal but have different hashes.
        has_floats = any(pa.types.is_floating(field.type.arrow) for field in fields)
        # Without a key the whole row was hashed, with the columns that existed then.
        has_keys = bool(self._schema.primary_keys) or "bucket-key" in self._schema.options
        if has_floats or not has_keys:
            return None
        fixed = _fixed_values(self._on_values)
        values = [fixed.get(field.name) for field in fields]
        count = 1
        for each in values:
            count *= _BUCKET_KEYS_MAX + 1 if each is None else len(each)
        if count > _BUCKET_KEYS_MAX:
            return None
        keys = list(product(*(each for each in values if each is not None)))
        if not keys:
            return frozenset()
        with_count = replace(self._schema, options={**self._schema.options, "bucket": str(total_buckets)})
        try:
            columns = [
                pa.array(values, each.type.arrow) for values, each in zip(zip(*keys, strict=True), fields, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(columns, names=[each.name for each in fields])
            return frozenset(bucket_of(batch, with_count).tolist())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, InvalidInputError):
            # A literal that the column can't store, or a bucket function of another engine: don't guess.
            return None

    def _keys_may_match(self, file: DataFileMeta) -> bool:
        if self._on_keys is None:
            return True
        stats = decoded_stats(file.key_stats, self._schema.key_fields, file.row_count, covers_nan=is_ours(file))
        return self._on_keys.may_match(stats)

    def _values_may_match(self, file: DataFileMeta) -> bool:
        if self._on_values is None:
            return True
        return self._on_values.may_match(file_stats(file, self._schemas.of(file.schema_id), self._schema))


def file_stats(file: DataFileMeta, stored: TableSchema, current: TableSchema) -> Mapping[str, ColumnStats]:
    """Return statistics of a file's columns by their current names; ``stored`` is the schema that it has."""
    names = [each.name for each in stored.fields] if file.value_stats_cols is None else file.value_stats_cols
    fields = [stored.field(name) for name in names]
    stats = decoded_stats(file.value_stats, fields, file.row_count, covers_nan=is_ours(file))
    return stats if stored.id == current.id else evolved_stats(stats, stored, current, file.row_count)


def is_ours(file: DataFileMeta) -> bool:
    """Return whether this library has written the file, and so omitted the bounds of columns with NaN."""
    return checksum_in(file.embedded_file_index) is not None


def decoded_stats(
    stats: SimpleStats, fields: Sequence[DataField], row_count: int, *, covers_nan: bool = False
) -> Mapping[str, ColumnStats]:
    """Return statistics by column; empty if another writer omitted them (rows of arity 0)."""
    if int.from_bytes(stats.min_values[:4], "big") != len(fields):
        return {}
    return decode_stats(stats, fields, row_count, covers_nan=covers_nan)


def _between(low: int | None, value: int, high: int | None) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)


def _within(values: Sequence[object], fields: Sequence[DataField], stats: Mapping[str, ColumnStats]) -> bool:
    return all(
        value is None or Equal(field.name, value).may_match(stats) for value, field in zip(values, fields, strict=True)
    )


def _restricted(predicate: Predicate | None, fields: Sequence[DataField]) -> Predicate | None:
    if predicate is None or not fields:
        return None
    return predicate.restrict_to(frozenset(field.name for field in fields))


def _fixed_values(predicate: Predicate) -> Mapping[str, tuple[object, ...]]:
    """Return the columns that can only have certain values in a matching row, and these values."""
    match predicate:
        case Equal(column=column, value=value):
            return {column: (value,)}
        case In(column=column, values=values):
            return {column: tuple(dict.fromkeys(values))}
        case And(left=left, right=right):
            # If both sides name values of a column, use the smaller set: it is a superset of the intersection.
            first, second = _fixed_values(left), _fixed_values(right)
            smaller = {column: min(first[column], second[column], key=len) for column in first.keys() & second.keys()}
            return {**first, **second, **smaller}
        case _:
            return {}
