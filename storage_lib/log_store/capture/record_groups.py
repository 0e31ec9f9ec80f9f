"""Puts together what the records of a batch say, which are read in groups: those with one schema at once.

Records in no group are tombstones. If no value of a group's types can be one of the table, all of its records with rows
are refused; a TRUNCATE has none, and deletes all rows whatever their columns are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.before_images import holds_whole_before
from storage_lib.log_store.capture.captured_changes import Refusal, SourceColumns
from storage_lib.log_store.capture.flattened_rows import ADDED_PREFIX, flattened_operations
from storage_lib.log_store.capture.record_keys import key_images
from storage_lib.log_store.capture.row_images import RowImages, merged_images, no_images
from storage_lib.log_store.capture.written_changes import Operation, WrittenChanges
from storage_lib.log_store.metadata.record_metadata import record_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.capture.record_keys import KeyReader
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.log_store.conversion.captured_values import Converted
    from storage_lib.schema.encoding.varint_columns import Int64s

_LEAVES_OUT_NULLS = "oracle"
"""The connector that leaves out an unchanged value even if it is null; PostgreSQL keeps only long ones apart."""

_WITHOUT_ROW = (Operation.TRUNCATE, Operation.MESSAGE)
_CONNECTOR_OF_ROWS = ""
"""Name for the connector of flattened records, which do not name it, but come from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGroup:
    """What the records of a group say; ``operations`` (int8), ``connectors`` (names, or None) and rows by record.

    ``columns`` are those of the source, None for records without a schema; ``metadata`` are the columns that are filled
    from what the records say apart from their rows. ``refusal``: why there are no rows although the records have some.
    """

    operations: np.ndarray
    before: RowImages
    after: RowImages
    connectors: np.ndarray
    columns: Mapping[str, ValueType] | None
    metadata: Mapping[str, Converted]
    refusal: str | None = None


def envelope_group(
    table: CapturedTable,
    operations: np.ndarray,
    read_rows: Callable[[], tuple[RowImages, RowImages]],
    *,
    connectors: np.ndarray,
    columns: Mapping[str, ValueType] | None,
    metadata: Mapping[str, Converted],
) -> ReadGroup:
    """Return what envelopes say, with their rows before and after; ``InvalidInputError`` refuses these."""
    refusal = None
    try:
        before, after = read_rows()
    except InvalidInputError as error:
        refusal = str(error)
        before = after = no_images(table.columns, len(operations))
    return ReadGroup(
        operations=operations,
        before=before,
        after=after,
        connectors=connectors,
        columns=columns,
        metadata=metadata,
        refusal=refusal,
    )


def flattened_group(
    others: Mapping[str, pa.Array],
    rows: RowImages,
    columns: Mapping[str, ValueType] | None,
    metadata: Mapping[str, Converted],
) -> ReadGroup:
    """Return what rows without envelopes say; ``columns`` may have those that the transformation adds."""
    operations = flattened_operations(others)
    is_deleted = operations == Operation.DELETE
    if columns is not None:
        columns = {name: of for name, of in columns.items() if not name.startswith(ADDED_PREFIX)}
    return ReadGroup(
        operations=operations,
        before=rows.where(is_deleted),
        after=rows.where(~is_deleted),
        connectors=np.full(len(operations), _CONNECTOR_OF_ROWS, object),
        columns=columns,
        metadata=metadata,
    )


def written_by_groups(
    table: CapturedTable,
    records: LogColumns,
    groups: Iterable[tuple[Int64s, Callable[[], ReadGroup | None]]],
    read_key: KeyReader,
) -> WrittenChanges:
    """Return what the records say: groups by the indices of their records, with what reads them (None: about no row).

    ``read_key`` reads those keys that matter.
    """
    keys = records.keys
    operations = np.full(len(keys), Operation.TOMBSTONE, np.int8)
    connectors = np.full(len(keys), None, object)
    before: list[tuple[Int64s, RowImages]] = []
    after: list[tuple[Int64s, RowImages]] = []
    metadata: list[tuple[Int64s, Mapping[str, Converted]]] = []
    schemas, refusals = list[SourceColumns](), list[Refusal]()
    for indices, read in groups:
        try:
            group = read()
        except InvalidInputError as error:
            operations[indices] = Operation.MESSAGE
            refusals += _refused(indices, str(error))
            continue
        if group is None:
            operations[indices] = Operation.MESSAGE
            continue
        if group.refusal is not None:
            has_row = ~np.isin(group.operations, _WITHOUT_ROW)
            operations[indices] = np.where(has_row, Operation.MESSAGE, group.operations)
            refusals += _refused(indices[has_row], group.refusal)
            continue
        operations[indices], connectors[indices] = group.operations, group.connectors
        before.append((indices, group.before))
        after.append((indices, group.after))
        metadata.append((indices, group.metadata))
        if group.columns is not None:
            schemas.append(SourceColumns(record_index=int(indices[0]), columns=group.columns))
    without_rows = np.delete(np.arange(len(keys)), np.concatenate([np.zeros(0, np.int64), *(i for i, _ in before)]))
    nothing = (without_rows, no_images(table.columns, len(without_rows)))
    old_rows = merged_images([nothing, *before])
    whole = holds_whole_before(table.before_image, pa.array(connectors, pa.string()), keys)
    is_change = np.isin(operations, (Operation.UPDATE, Operation.DELETE))
    wants_key = (operations == Operation.TOMBSTONE) | (is_change & ~(whole & old_rows.is_whole))
    if table.requires_metadata:
        # To tell whether a tombstone follows it.
        wants_key |= operations == Operation.DELETE
    return WrittenChanges(
        operations=operations,
        before=old_rows,
        after=merged_images([nothing, *after]),
        keys=key_images(table, keys, wants_key, read_key),
        holds_whole_before=whole,
        schemas=tuple(schemas),
        refusals=tuple(refusals),
        metadata=record_metadata(table.metadata, records, table.topic, metadata),
        leaves_out_nulls=bool((connectors == _LEAVES_OUT_NULLS).any()),
    )


def _refused(indices: Int64s, reason: str) -> list[Refusal]:
    return [Refusal(record_index=index, column=None, reason=reason) for index in indices.tolist()]
