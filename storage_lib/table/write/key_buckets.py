"""Routes rows to the partition and bucket of their key, in tables whose primary key lacks a partition column.

Such a key may be in any partition, and a new row may move it to another one. Its current location is looked up in the
files of the base snapshot, by their key ranges, and cached for the rest of the commit. The merge engine decides about a
row whose key is in another partition, as in Paimon:

deduplicate                  the key is deleted where it was, and the row goes to its own partition
partial-update, aggregation  the row goes to the partition where the key is
first-row                    the row is ignored

A key that was removed (``...remove-record-on-delete``) is in no partition, also within one commit: the result must not
depend on how rows are divided into commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.dynamic_bucket.bucket_choice import BucketLimits, FillingBuckets, assigners_of
from storage_lib.schema.encoding.binary_row import decode_row
from storage_lib.schema.options.table_options import MergeEngine
from storage_lib.schema.placing.bucketing import key_hashes, partition_codes
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.write.hash_buckets import Routed, grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage_lib.file_store.commit_message import CommitMessage
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.read.point_lookup import PointLookup

_NOWHERE = -1
_Ints = npt.NDArray[np.int64]


class KeyBuckets:
    """Routes the rows of one task in one commit; caches the keys of the commit with their locations.

    ``base`` None: no key is stored yet, as for rows that replace those of the whole table.
    """

    def __init__(
        self,
        *,
        schema: TableSchema,
        merge_engine: MergeEngine,
        limits: BucketLimits,
        lookup: PointLookup,
        base: Snapshot | None,
        row_counts: Callable[[bytes], Mapping[int, int]],
        removes_on_delete: bool = False,
        refusal: str | None = None,
    ) -> None:
        """``row_counts`` returns a partition's approximate rows by bucket; ``removes_on_delete``: whether a ``-D``
        removes the row of an engine that merges rows; ``refusal``: error if rows must not be written.
        """
        self._refusal = refusal
        self._removes_on_delete = removes_on_delete
        self._schema = schema
        self._merge_engine = merge_engine
        self._limits = limits
        self._lookup = lookup
        self._base = base
        self._row_counts = row_counts
        self._codes: dict[bytes, int] = {}
        self._partitions: list[bytes] = []
        self._filling: dict[int, FillingBuckets] = {}
        self._known: pl.DataFrame | None = None
        self.assigners: set[int] = set()
        """Numbers of the assigners whose keys this task has written."""

    def indexed(self, messages: Sequence[CommitMessage]) -> tuple[CommitMessage, ...]:
        """Return the messages unchanged: the files themselves locate the keys."""
        return tuple(messages)

    def route(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[Routed]:
        """Yield the rows, and the deletions that they cause, by partition and bucket, each pair once.

        Raises ``InvalidInputError`` for rows that cannot be written.
        """
        if not rows.num_rows:
            return
        if self._refusal is not None:
            raise InvalidInputError(self._refusal)
        frame = comparable_frame(pa.Table.from_batches([rows.select(list(self._schema.primary_keys))]))
        distinct = frame.unique(maintain_order=True).with_row_index("key")
        keys = frame.join(distinct, on=frame.columns, how="left", maintain_order="left", nulls_equal=True)["key"]
        self.assigners.update(
            np.unique(assigners_of(0, key_hashes(rows, self._schema), self._limits.assigner_count)).tolist()
        )
        at_partition, at_bucket = self._places_of(distinct.drop("key"), rows, keys.to_numpy())
        chains = _Chains(
            key=keys.to_numpy().astype(np.int64),
            wanted=self._codes_of(rows),
            hashes=key_hashes(rows, self._schema),
            at_partition=at_partition,
            at_bucket=at_bucket,
        )
        match self._merge_engine:
            case MergeEngine.DEDUPLICATE:
                routed = self._moved(chains, rows, kinds)
            case MergeEngine.FIRST_ROW:
                routed = self._routed_first(chains, rows, kinds, only_there=True)
            case _:
                routed = self._routed_first(chains, rows, kinds, only_there=False)
        codes, buckets, rows, kinds = routed
        self._remember(distinct.drop("key"), chains)
        yield from grouped(self._partitions, codes, buckets, rows, kinds)

    def _moved(
        self, chains: _Chains, rows: pa.RecordBatch, kinds: pa.Array
    ) -> tuple[_Ints, _Ints, pa.RecordBatch, pa.Array]:
        """Route every row to its own partition, preceded by a deletion where its key was stored."""
        order, is_first = chains.in_order()
        key, wanted = chains.key[order], chains.wanted[order]
        before = np.where(is_first, chains.at_partition[key], np.roll(wanted, 1))
        begins = before != wanted
        buckets = chains.at_bucket[key]
        buckets[begins] = self._place(wanted[begins], chains.hashes[order][begins])
        # Between two moves of a key its rows share a bucket.
        buckets = buckets[np.maximum.accumulate(np.where(begins | is_first, np.arange(len(order)), 0))]
        bucket_before = np.where(is_first, chains.at_bucket[key], np.roll(buckets, 1))
        leaves = np.flatnonzero(begins & (before != _NOWHERE))
        is_last = np.concatenate((is_first[1:], [True]))
        chains.at_partition[key[is_last]], chains.at_bucket[key[is_last]] = wanted[is_last], buckets[is_last]
        # A deletion precedes the row that causes it directly: a key may return within one batch.
        places = np.concatenate((2 * order + 1, 2 * order[leaves]))
        arrival = np.argsort(places, kind="stable")
        sources = np.concatenate((order, order[leaves]))[arrival]
        codes = np.concatenate((wanted, before[leaves]))[arrival]
        is_deletion = arrival >= len(order)
        new_kinds = np.where(is_deletion, int(RowKind.DELETE), kinds.to_numpy()[sources]).astype(np.int8)
        return (
            codes,
            np.concatenate((buckets, bucket_before[leaves]))[arrival],
            self._in_partitions(rows.take(pa.array(sources)), codes, is_deletion),
            pa.array(new_kinds, pa.int8()),
        )

    def _routed_first(
        self, chains: _Chains, rows: pa.RecordBatch, kinds: pa.Array, *, only_there: bool
    ) -> tuple[_Ints, _Ints, pa.RecordBatch, pa.Array]:
        """Route every row to where its key is; with ``only_there`` rows of another partition are left out."""
        order, is_first = chains.in_order()
        key, ordered_kinds = chains.key[order], kinds.to_numpy()[order]
        adds = (ordered_kinds == RowKind.INSERT) | (ordered_kinds == RowKind.UPDATE_AFTER)
        ends = (ordered_kinds == RowKind.DELETE) & self._removes_on_delete
        # The rows between two removals of a key, its life, are merged into one row, which is in one place.
        begins = is_first | np.concatenate(([False], ends[:-1]))
        starts = np.flatnonzero(begins)
        life_of_row = np.cumsum(begins) - 1
        key_of_life = key[starts]
        is_stored = is_first[starts] & (chains.at_partition[key_of_life] != _NOWHERE)
        first_added = np.minimum.reduceat(np.where(adds, np.arange(len(order)), len(order)), starts)
        is_added = first_added < len(order)
        # Retractions of a key without a row have no effect; they precede its first row, or stay in their own partition.
        leader = order[np.where(is_added, first_added, starts)]
        codes = np.where(is_stored, chains.at_partition[key_of_life], chains.wanted[leader])
        buckets = chains.at_bucket[key_of_life]
        buckets[~is_stored] = self._place(codes[~is_stored], chains.hashes[leader[~is_stored]])
        is_last_life = np.concatenate((is_first[starts][1:], [True]))
        is_removed = np.logical_or.reduceat(ends, starts)
        remains = (is_stored | is_added) & ~is_removed
        last = key_of_life[is_last_life]
        chains.at_partition[last] = np.where(remains, codes, _NOWHERE)[is_last_life]
        chains.at_bucket[last] = np.where(remains, buckets, _NOWHERE)[is_last_life]
        of_row = np.empty(len(order), dtype=np.int64)
        of_row[order] = life_of_row
        codes, buckets = codes[of_row], buckets[of_row]
        differs = codes != chains.wanted
        if only_there:
            there = np.flatnonzero(~differs)
            return codes[there], buckets[there], rows.take(pa.array(there)), kinds.take(pa.array(there))
        return codes, buckets, self._in_partitions(rows, codes, differs), kinds

    def _place(self, codes: _Ints, hashes: npt.NDArray[np.int32]) -> _Ints:
        """Choose buckets for keys that are new in their partitions."""
        buckets = np.empty(len(codes), dtype=np.int64)
        assigners = assigners_of(0, hashes, self._limits.assigner_count)
        for code in np.unique(codes).tolist():
            for assigner in np.unique(assigners[codes == code]).tolist():
                chosen = np.flatnonzero((codes == code) & (assigners == assigner))
                buckets[chosen] = self._filling_of(code).place(hashes[chosen], assigner)
        return buckets

    def _filling_of(self, code: int) -> FillingBuckets:
        filling = self._filling.get(code)
        if filling is None:
            counts = {} if self._base is None else self._row_counts(self._partitions[code])
            filling = self._filling[code] = FillingBuckets(counts, self._limits)
        return filling

    def _in_partitions(self, rows: pa.RecordBatch, codes: _Ints, changes: npt.NDArray[np.bool_]) -> pa.RecordBatch:
        """Replace the partition columns of the rows where ``changes`` by those of the partition with the code."""
        if not changes.any():
            return rows
        fields = self._schema.partition_fields
        values = [decode_row(partition, [field.type for field in fields]) for partition in self._partitions]
        columns = {name: rows.column(name) for name in rows.schema.names}
        for index, field in enumerate(fields):
            of_codes = pa.array([each[index] for each in values], field.type.arrow).take(pa.array(codes))
            columns[field.name] = pc.if_else(pa.array(changes), of_codes, columns[field.name])
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)

    def _codes_of(self, rows: pa.RecordBatch) -> _Ints:
        partitions, codes = partition_codes(rows, self._schema)
        return np.array([self._code(each) for each in partitions], dtype=np.int64)[codes]

    def _code(self, partition: bytes) -> int:
        if partition not in self._codes:
            self._codes[partition] = len(self._partitions)
            self._partitions.append(partition)
        return self._codes[partition]

    def _places_of(
        self, distinct: pl.DataFrame, rows: pa.RecordBatch, keys: npt.NDArray[np.int64]
    ) -> tuple[_Ints, _Ints]:
        """Return the current location of each distinct key: its partition's code and its bucket, or ``_NOWHERE``."""
        partitions = np.full(len(distinct), _NOWHERE, dtype=np.int64)
        buckets = np.full(len(distinct), _NOWHERE, dtype=np.int64)
        numbered = distinct.with_row_index("key")
        is_unknown = np.ones(len(distinct), dtype=np.bool_)
        if self._known is not None:
            known = numbered.join(self._known, on=distinct.columns, how="inner", nulls_equal=True)
            partitions[known["key"].to_numpy()] = known["partition"].to_numpy()
            buckets[known["key"].to_numpy()] = known["bucket"].to_numpy()
            is_unknown[known["key"].to_numpy()] = False
        unknown = np.flatnonzero(is_unknown)
        if self._base is None or not len(unknown):
            return partitions, buckets
        _, first = np.unique(keys, return_index=True)
        asked = rows.select(list(self._schema.primary_keys)).take(pa.array(first[unknown]))
        for partition, bucket, found in self._lookup.locations(self._base, pa.Table.from_batches([asked])):
            at = comparable_frame(found).join(numbered, on=distinct.columns, how="inner", nulls_equal=True)
            partitions[at["key"].to_numpy()] = self._code(partition)
            buckets[at["key"].to_numpy()] = bucket
        return partitions, buckets

    def _remember(self, distinct: pl.DataFrame, chains: _Chains) -> None:
        places = distinct.with_columns(
            pl.Series("partition", chains.at_partition), pl.Series("bucket", chains.at_bucket)
        )
        if self._known is not None:
            others = self._known.join(distinct, on=distinct.columns, how="anti", nulls_equal=True)
            places = pl.concat([others, places])
        self._known = places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chains:
    """Keys and locations of one batch.

    For each row: its key's number, its own partition's code and its key's hash. For each key: its location, which is
    updated while the batch is routed.
    """

    key: _Ints
    wanted: _Ints
    hashes: npt.NDArray[np.int32]
    at_partition: _Ints
    at_bucket: _Ints

    def in_order(self) -> tuple[_Ints, npt.NDArray[np.bool_]]:
        """Return row indexes by key, in arrival order within a key, and a mask of each key's first row."""
        order = np.argsort(self.key, kind="stable")
        key = self.key[order]
        return order, np.concatenate(([True], key[1:] != key[:-1]))
