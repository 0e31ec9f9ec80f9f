"""``table.lookup(keys)``: finds the rows of keys in the few files that may contain them.

The key determines the partition and the bucket. Only files of the bucket whose key range contains one of the keys are
opened, and only such row groups are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split
from storage_lib.file_store.store import FileStore
from storage_lib.progress.usable_cores import usable_cores
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.predicate import And, Predicate
from storage_lib.schema.placing.bucketing import bucket_of, group_rows, partition_codes
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.input.input_rows import Rows, record_batches
from storage_lib.table.input.moment_range import find_out_of_range

_NAMED_KEYS_MAX = 1000
"""For more keys in one bucket, rows within their bounds are read and then filtered."""
_THREADS_MAX = 8
_SIFTED_ROWS_MIN = 65_536
"""Minimum number of rows, or the number of keys if larger, that are collected before they are filtered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Files of one bucket that may contain some of the keys, and a predicate that all rows of these keys match."""

    split: Split
    predicate: Predicate | None
    keys: pa.Table


class PointLookup:
    """Finds rows by primary key. Threads may share it."""

    def __init__(self, *, table: str, schema: TableSchema, file_store: FileStore, only_compacted: bool) -> None:
        self._only_compacted = only_compacted
        self._table = table
        self._schema = schema
        self._file_store = file_store

    def lookup(
        self, snapshot: Snapshot | None, keys: Rows | Sequence[Mapping[str, object]], columns: Sequence[str] | None
    ) -> pa.Table:
        """Return the current rows of ``keys``, in key order, with the wanted columns; missing keys are omitted.

        Raises ``InvalidInputError`` for a table without a primary key, unknown columns, and keys that lack a key
        column, contain a null or have values of other types.
        """
        wanted = [field.name for field in self._schema.fields] if columns is None else list(columns)
        fields = [self._schema.arrow_schema.field(self._schema.field(name).name) for name in wanted]
        asked = self._asked(keys)
        read = list(dict.fromkeys([*wanted, *self._schema.primary_keys]))
        schema = pa.schema([self._schema.arrow_schema.field(name) for name in read])
        found = pa.Table.from_batches(self._found(snapshot, asked, read), schema=schema)
        return self._in_order(asked, found).select(wanted).cast(pa.schema(fields))

    def rows_of(
        self,
        snapshot: Snapshot | None,
        keys: pa.Table,
        *,
        added: Mapping[tuple[bytes, int], Sequence[DataFileMeta]] | None = None,
        left_out: Collection[str] = (),
    ) -> pa.Table:
        """Return whole rows of ``keys`` (key columns in the table's types, repetitions allowed), in any order.

        Reads the snapshot's files plus the files ``added`` by (partition, bucket), without those ``left_out`` by name.
        """
        names = [field.name for field in self._schema.fields]
        asked = keys.select(self._schema.primary_keys)
        found = self._found(snapshot, asked, names, added, left_out)
        return pa.Table.from_batches(found, schema=self._schema.arrow_schema)

    def rows_of_bucket(
        self, snapshot: Snapshot, place: tuple[bytes, int], keys: pa.Table, *, left_out: Collection[str] = ()
    ) -> pa.Table:
        """Return the rows of ``keys`` as ``rows_of``, of one (partition, bucket): a key may move between those."""
        asked = keys.select(self._schema.primary_keys)
        found: list[pa.RecordBatch] = []
        if asked.num_rows:
            names = [field.name for field in self._schema.fields]
            predicate = self._predicate(asked.combine_chunks().to_batches()[0])
            for split in self._splits(snapshot, *place, predicate, (), left_out):
                found.extend(self._sifted(self._file_store.read.read(split, names, predicate), asked))
        return pa.Table.from_batches(found, schema=self._schema.arrow_schema)

    def newest_versions(self, snapshot: Snapshot | None, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return ``columns`` of the newest version of each of the ``keys``, also where it deletes the row.

        Any order; a key whose deletion was compacted away has none.
        """
        asked = keys.select(self._schema.primary_keys)
        schema = pa.schema([self._schema.arrow_schema.field(name) for name in columns])
        found: list[pa.RecordBatch] = []
        for place in self._places(snapshot, asked, {}, ()):
            candidates = self._file_store.read.newest_versions(place.split, columns, place.predicate)
            found.extend(self._sifted(candidates, place.keys))
        return pa.Table.from_batches(found, schema=schema)

    def locations(self, snapshot: Snapshot | None, keys: pa.Table) -> Iterator[tuple[bytes, int, pa.Table]]:
        """Yield partition, bucket and the ``keys`` (primary key columns) stored there; each key at most once."""
        asked = keys.select(self._schema.primary_keys)
        for place in self._places(snapshot, asked, {}, ()):
            candidates = self._file_store.read.read(place.split, self._schema.primary_keys, place.predicate)
            found = list(self._sifted(candidates, place.keys))
            if found:
                yield place.split.partition, place.split.bucket, pa.Table.from_batches(found)

    def _asked(self, keys: Rows | Sequence[Mapping[str, object]]) -> pa.Table:
        """Convert the keys to a table of exactly the primary key's columns."""
        names = self._schema.primary_keys
        if not names:
            message = f"table {self._table} has no primary key to look rows up by; read it with a filter"
            raise InvalidInputError(message)
        schema = pa.schema([self._schema.arrow_schema.field(name) for name in names])
        try:
            if isinstance(keys, Sequence):
                for key in keys:
                    self._refuse_other_columns(set(_mapping(key)))
                return _without_nulls(pa.Table.from_pylist([dict(key) for key in keys], schema=schema))
            batches = list(record_batches(_arrow_rows(keys)))
            for batch in batches:
                self._refuse_other_columns(set(batch.schema.names))
            tables = [pa.Table.from_batches([batch]).select(names).cast(schema) for batch in batches]
            return _without_nulls(pa.concat_tables(tables) if tables else schema.empty_table())
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
            message = f"table {self._table}: these are not keys of ({', '.join(map(str, schema))}): {error}"
            raise InvalidInputError(message) from error

    def _refuse_other_columns(self, given: set[str]) -> None:
        missing = [name for name in self._schema.primary_keys if name not in given]
        strangers = sorted(given - set(self._schema.primary_keys))
        if missing or strangers:
            message = (
                f"table {self._table}: a key has the columns ({', '.join(self._schema.primary_keys)}), all of them and "
                f"no others; {'missing ' + missing[0] if missing else 'not ' + strangers[0]!r}"
            )
            raise InvalidInputError(message)

    def _found(
        self,
        snapshot: Snapshot | None,
        asked: pa.Table,
        read: Sequence[str],
        added: Mapping[tuple[bytes, int], Sequence[DataFileMeta]] | None = None,
        left_out: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these keys. Buckets are read in parallel: decoding releases the interpreter's lock."""
        places = list(self._places(snapshot, asked, added or {}, left_out))

        def found_at(place: _Place) -> list[pa.RecordBatch]:
            candidates = self._file_store.read.read(place.split, read, place.predicate)
            return list(self._sifted(candidates, place.keys))

        threads_max = min(_THREADS_MAX, len(places), usable_cores())
        if threads_max <= 1:
            yield from (batch for place in places for batch in found_at(place))
            return
        with ThreadPoolExecutor(threads_max) as threads:
            for batches in threads.map(found_at, places):
                yield from batches

    def _places(
        self,
        snapshot: Snapshot | None,
        asked: pa.Table,
        added: Mapping[tuple[bytes, int], Sequence[DataFileMeta]],
        left_out: Collection[str],
    ) -> Iterator[_Place]:
        """Yield the buckets that may contain rows of these keys."""
        if not asked.num_rows or (snapshot is None and not added):
            return
        keys = asked.combine_chunks().to_batches()[0]
        if self._schema.has_dynamic_buckets:
            yield from self._dynamic_places(snapshot, keys, added, left_out)
            return
        of_partition: dict[bytes, list[np.ndarray]] = {}
        for partition, _, indices in group_rows(keys, self._schema):
            of_partition.setdefault(partition, []).append(indices)
        for partition, parts in of_partition.items():
            rows = keys.take(pa.array(np.concatenate(parts)))
            count = self._file_store.scan.live_files(snapshot, partitions=(partition,)).bucket_count(partition)
            if count is None and not added:
                continue
            buckets = bucket_of(rows, self._schema, bucket_count=count)
            for bucket in np.unique(buckets).tolist():
                of_bucket = rows.filter(pa.array(buckets == bucket))
                predicate = self._predicate(of_bucket)
                more = added.get((partition, bucket), ())
                for split in self._splits(snapshot, partition, bucket, predicate, more, left_out):
                    yield _Place(split=split, predicate=predicate, keys=pa.Table.from_batches([of_bucket]))

    def _dynamic_places(
        self,
        snapshot: Snapshot | None,
        keys: pa.RecordBatch,
        added: Mapping[tuple[bytes, int], Sequence[DataFileMeta]],
        left_out: Collection[str],
    ) -> Iterator[_Place]:
        """Yield all buckets of the keys' partitions; all buckets of the table if keys may be in any partition."""
        of_partition: dict[bytes, pa.RecordBatch] = {}
        if not self._schema.crosses_partitions:
            partitions, codes = partition_codes(keys, self._schema)
            of_partition = {each: keys.filter(pa.array(codes == code)) for code, each in enumerate(partitions)}
        wanted = None if self._schema.crosses_partitions else set(of_partition)
        live = self._file_store.scan.live_files(snapshot, partitions=wanted)
        places = {(partition, bucket) for partition in live.partitions for bucket in live.buckets_of(partition)}
        for partition, bucket in sorted(places | added.keys()):
            rows = keys if self._schema.crosses_partitions else of_partition.get(partition)
            if rows is None:
                continue
            predicate = self._predicate(rows)
            more = added.get((partition, bucket), ())
            for split in self._splits(snapshot, partition, bucket, predicate, more, left_out):
                yield _Place(split=split, predicate=predicate, keys=pa.Table.from_batches([rows]))

    def _splits(
        self,
        snapshot: Snapshot | None,
        partition: bytes,
        bucket: int,
        predicate: Predicate | None,
        added: Sequence[DataFileMeta],
        left_out: Collection[str],
    ) -> Iterator[Split]:
        """Yield the files of one bucket that may contain the keys, as at most one split."""
        split = Split(snapshot_id=0, partition=partition, bucket=bucket, files=())
        if snapshot is not None:
            plan = self._file_store.scan.plan(
                snapshot,
                predicate=predicate,
                buckets={bucket},
                partitions=(partition,),
                only_compacted=self._only_compacted,
            )
            split = next(iter(plan.splits()), replace(split, snapshot_id=snapshot.id))
        files = tuple(file for file in (*split.files, *added) if file.file_name not in left_out)
        if files:
            yield replace(split, files=files)

    def _sifted(self, candidates: Iterator[pa.RecordBatch], asked: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the candidates that have one of the keys; about as many other rows are held in memory at most."""
        keys = comparable_frame(asked).unique()
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in candidates:
            held.append(batch)
            count += batch.num_rows
            if count >= max(_SIFTED_ROWS_MIN, asked.num_rows):
                yield from self._of_keys(held, keys)
                held, count = [], 0
        if held:
            yield from self._of_keys(held, keys)

    def _of_keys(self, batches: list[pa.RecordBatch], keys: pl.DataFrame) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches)
        frame = comparable_frame(rows.select(self._schema.primary_keys)).with_row_index("found")
        found = frame.join(keys, on=keys.columns, how="semi")["found"]
        yield from (rows if len(found) == rows.num_rows else rows.take(found.to_arrow())).to_batches()

    def _predicate(self, keys: pa.RecordBatch) -> Predicate | None:
        """Build a predicate on the columns that files are sorted by; all keys are in one partition."""
        of_columns = (self._of_column(field.name, keys.column(field.name)) for field in self._schema.key_fields)
        parts = [each for each in of_columns if each is not None]
        return reduce(And, parts) if parts else None

    def _of_column(self, name: str, values: pa.Array) -> Predicate | None:
        if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            return None  # bounds of values say nothing about NaN
        if find_out_of_range(values, name) is not None:
            return None  # such keys, written by other engines, have no Python value to compare with
        distinct = pc.unique(values)
        if len(distinct) <= _NAMED_KEYS_MAX:
            return col(name).isin(distinct.to_pylist())
        bounds = pc.min_max(distinct)
        return col(name).between(bounds["min"].as_py(), bounds["max"].as_py())

    def _in_order(self, asked: pa.Table, found: pa.Table) -> pa.Table:
        names = self._schema.primary_keys
        left = comparable_frame(asked).unique(maintain_order=True)
        right = comparable_frame(found.select(names)).with_row_index("found")
        matched = left.with_row_index("asked").join(right, on=left.columns, how="inner").sort("asked")["found"]
        return found.take(matched.to_arrow())


def _mapping(key: object) -> Mapping[str, object]:
    if isinstance(key, Mapping):
        return key
    message = f"{key!r} is not a mapping of columns to values; write [{{column: value}}, ...]"
    raise ValueError(message)


def _arrow_rows(keys: Rows) -> Rows:
    if isinstance(keys, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return keys
    message = (
        f"a {type(keys).__name__} is neither a list of mappings nor a pyarrow Table, RecordBatch or RecordBatchReader"
    )
    raise ValueError(message)


def _without_nulls(keys: pa.Table) -> pa.Table:
    for name in keys.column_names:
        if keys.column(name).null_count:
            message = f"column {name!r} of a key is null"
            raise ValueError(message)
    return keys
