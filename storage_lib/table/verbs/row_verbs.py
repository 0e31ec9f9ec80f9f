"""``table.update``, ``delete``, ``insert``, ``upsert`` and ``merge``: changes that depend on the stored rows.

The lease is held from the read of the stored rows to the commit, so that no other commit comes between. Matching rows
are read and written batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.schema.filter.filter_text import Filter, as_predicate
from storage_lib.schema.filter.literal import exact_scalar, typed_literal
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.options.field_options import FieldOptions
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.table_options import MergeEngine, UpdateBeforeSource
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.nested_types import is_nested
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.changes.row_expression import computed_by_row
from storage_lib.table.changes.source_matching import places_of, repeated_key, with_stored_values
from storage_lib.table.input.frames import Frame, arrow_rows
from storage_lib.table.input.input_arrays import conformed, misfit
from storage_lib.table.input.input_rows import InputRows, record_batches
from storage_lib.table.protocol.identity import write_identity_of
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.point_lookup import PointLookup
from storage_lib.table.verbs.changed_columns import refuse_changed_columns
from storage_lib.table.verbs.direct_writes import DirectWrites

Matched: TypeAlias = Literal["update", "delete", "keep"]
NotMatched: TypeAlias = Literal["insert", "ignore"]
NotMatchedBySource: TypeAlias = Literal["keep", "delete"]

_RowsOf: TypeAlias = Callable[[Snapshot | None], Iterator[pa.Table]]


class RowVerbs:
    """The verbs of ``DynamicTable`` that read before they write; see their docstrings there."""

    def __init__(
        self,
        context: TableContext,
        *,
        input_rows: InputRows,
        old_rows: PointLookup,
        writes: DirectWrites,
        newest_schema: Callable[[], TableSchema],
    ) -> None:
        self._context = context
        self._newest_schema = newest_schema
        self._name = context.name
        self._schema = context.schema
        self._names = [field.name for field in context.schema.fields]
        self._kind_column = context.options.row_kind_field
        self._input = input_rows
        self._old_rows = old_rows
        self._writes = writes
        # The log of such a table needs both the old and the new row of an update.
        self.logs_before = (
            context.logs_old_rows and context.options.write_produce_update_before is UpdateBeforeSource.INPUT
        )

    def insert(
        self,
        rows: Frame,
        identity: tuple[str | None, int | None],
        tracked: bool | None,  # noqa: FBT001
        *,
        partial: bool,
    ) -> Snapshot | None:
        """See ``DynamicTable.insert``."""
        given = self._whole_table(rows, "insert")
        self._input.check_columns(given.schema)
        if not partial:
            self._input.check_complete(given.schema, "insert", "Add the columns, or leave them null with partial=True")
        keys = self._schema.primary_keys
        if keys:
            self._refuse_repeated(given, "insert")

        def rows_of(base: Snapshot | None) -> Iterator[pa.Table]:
            if keys:
                stored = self._old_rows.lookup(base, given.select(list(keys)), list(keys))
                if stored.num_rows:
                    message = (
                        f"table {self._name}: insert: a row with the key {stored.slice(0, 1).to_pylist()[0]} exists"
                        f"{f', and {stored.num_rows - 1} more' if stored.num_rows > 1 else ''}. Use upsert to replace "
                        "rows, or leave out those that exist; nothing was committed"
                    )
                    raise InvalidInputError(message)
            yield self._with_kind(given, RowKind.INSERT)

        return self._commit(rows_of, identity, tracked, reads_base=bool(keys))

    def upsert(
        self,
        rows: Frame,
        identity: tuple[str | None, int | None],
        tracked: bool | None,  # noqa: FBT001
        *,
        partial: bool,
    ) -> Snapshot | None:
        """See ``DynamicTable.upsert``."""
        given = self._whole_table(rows, "upsert")
        if not self._schema.primary_keys:
            message = f"table {self._name} has no primary key, by which upsert finds the rows to replace; use append"
            raise InvalidInputError(message)
        is_partial = not set(self._names).issubset(given.column_names)
        if partial and is_partial and self._context.options.merge_engine is not MergeEngine.PARTIAL_UPDATE:
            return self.merge(given, identity, tracked, verb="upsert")
        if is_partial:
            self._refuse_parts_of_groups(given.column_names)
        self._input.check_complete(
            given.schema, "upsert", "Add the columns, or keep the stored values with partial=True"
        )
        self._input.check_columns(given.schema)
        if self.logs_before:
            return self.merge(given, identity, tracked, verb="upsert")
        rows = self._with_kind(given, RowKind.INSERT)
        return self._commit(lambda _: iter([rows]), identity, tracked, refuses_late=False, reads_base=False)

    def _refuse_parts_of_groups(self, given: list[str]) -> None:
        """Refuse rows with some columns of a sequence group: merging would set the others to null."""
        for group in FieldOptions.parse(self._schema.options).sequence_groups:
            columns = [*group.fields, *group.members]
            missing = [name for name in columns if name not in given]
            if 0 < len(missing) < len(columns):
                message = (
                    f"table {self._name}: upsert: the rows have some columns of a group that is "
                    f"replaced together ({group.option}), but lack {', '.join(map(repr, missing))}, which would become "
                    "null. Add the columns, or leave out all of the group; nothing was committed"
                )
                raise InvalidInputError(message)

    def update(
        self,
        condition: Filter,
        values: Mapping[str, object],
        identity: tuple[str | None, int | None],
        tracked: bool | None,  # noqa: FBT001
    ) -> Snapshot | None:
        """See ``DynamicTable.update``."""
        self._refuse_merged_rows("update")
        self._refuse_no_condition("update", condition)
        columns = {name: self._value_of(name, value) for name, value in values.items()}
        if not columns:
            message = f"table {self._name}: update: values is empty; name at least one column and its new value"
            raise InvalidInputError(message)

        def rows_of(base: Snapshot | None) -> Iterator[pa.Table]:
            for batch in self._matching(base, condition):
                after = batch
                frame: pl.DataFrame | None = None
                for name, value in columns.items():
                    if isinstance(value, pl.Expr):
                        frame = _frame(batch) if frame is None else frame
                        new = self._evaluated(frame, name, value)
                    else:
                        new = pa.chunked_array([pa.repeat(value, batch.num_rows)])
                    after = after.set_column(after.column_names.index(name), name, new)
                if self.logs_before or not self._schema.primary_keys:
                    yield self._in_pairs(batch, self._conformed(after))
                else:
                    yield self._with_kind(after, RowKind.UPDATE_AFTER)

        return self._commit(rows_of, identity, tracked, writes_stored=True)

    def delete(
        self,
        which: Filter | Frame,
        identity: tuple[str | None, int | None],
        tracked: bool | None,  # noqa: FBT001
    ) -> Snapshot | None:
        """See ``DynamicTable.delete``."""
        self._refuse_merged_rows("delete")
        self._refuse_no_condition("delete", which)
        rows = _as_rows(which)
        predicate = as_predicate(which) if rows is None else None
        if rows is not None and not self._schema.primary_keys:
            message = f"table {self._name} has no primary key; delete its rows by a filter"
            raise InvalidInputError(message)
        keys = None if rows is None else self._keys_of(rows)

        def rows_of(base: Snapshot | None) -> Iterator[pa.Table]:
            if keys is not None:
                yield self._with_kind(self._old_rows.lookup(base, keys, None), RowKind.DELETE)
                return
            for batch in self._matching(base, predicate):
                yield self._with_kind(batch, RowKind.DELETE)

        return self._commit(rows_of, identity, tracked, writes_stored=True)

    def merge(
        self,
        source: Frame,
        identity: tuple[str | None, int | None],
        tracked: bool | None,  # noqa: FBT001
        *,
        matched: Matched = "update",
        not_matched: NotMatched = "insert",
        not_matched_by_source: NotMatchedBySource = "keep",
        verb: str = "merge",
    ) -> Snapshot | None:
        """See ``DynamicTable.merge``; ``verb`` names the calling verb in errors."""
        self._refuse_merged_rows(verb)
        self._refuse_unknown("matched", matched, get_args(Matched))
        self._refuse_unknown("not_matched", not_matched, get_args(NotMatched))
        self._refuse_unknown("not_matched_by_source", not_matched_by_source, get_args(NotMatchedBySource))
        keys = list(self._schema.primary_keys)
        if not keys:
            message = f"table {self._name} has no primary key, by which {verb} matches rows; use MERGE INTO of SQL"
            raise InvalidInputError(message)
        given = self._whole_table(source, verb)
        known = [name for name in self._names if name in given.column_names]
        self._refuse_repeated(given, verb)

        def rows_of(base: Snapshot | None) -> Iterator[pa.Table]:
            asked = given.select(keys)
            stored = self._old_rows.lookup(base, asked, None)
            places = pa.array(places_of(asked, stored.select(keys)))
            exists = pc.greater_equal(places, 0)
            before = stored.take(places.filter(exists))
            if matched == "delete":
                yield self._with_kind(before, RowKind.DELETE)
            elif matched == "update":
                after = with_stored_values(given.filter(exists), before, self._names)
                if self.logs_before:
                    yield self._with_kind(before, RowKind.UPDATE_BEFORE)
                yield self._with_kind(after, RowKind.UPDATE_AFTER)
            if not_matched == "insert":
                yield self._with_kind(given.filter(pc.invert(exists)).select(known), RowKind.INSERT)
            if not_matched_by_source == "delete":
                for batch in self._matching(base, None):
                    absent = pc.less(pa.array(places_of(batch.select(keys), asked)), 0)
                    yield self._with_kind(batch.filter(absent), RowKind.DELETE)

        return self._commit(rows_of, identity, tracked, writes_stored=True, refuses_late=verb != "upsert")

    # --- parts --------------------------------------------------------------------------------------------------

    def _commit(
        self,
        rows_of: _RowsOf,
        identity: tuple[str | None, int | None],
        tracked: bool | None,  # noqa: FBT001
        *,
        writes_stored: bool = False,
        refuses_late: bool = True,
        reads_base: bool = True,
    ) -> Snapshot | None:
        """Write the rows under a lease. ``writes_stored``: among them are stored rows, so they need all columns.

        ``refuses_late``: a row that is older than the stored one fails the commit, and is not ignored. ``reads_base``:
        the rows depend on those of the snapshot that ``rows_of`` gets.
        """
        builder = self._writes.builder
        user, identifier = write_identity_of(self._name, self._context.environment, *identity)
        write_context = builder.begin(commit_user=user, tracked=tracked, needs_lease=True)
        write_context = replace(write_context, refuses_late=refuses_late, reads_base=reads_base)
        leases = self._context.leases
        try:
            with leases.beating(write_context.lease) if write_context.lease is not None else nullcontext():
                if writes_stored:
                    refuse_changed_columns(self._name, began=self._schema.id, newest=self._newest_schema().id)
                base_id = write_context.base_snapshot_id
                base = None if not base_id else self._context.file_store.snapshots.load(base_id)
                changes = rows_of(base)
                first = next((rows for rows in changes if rows.num_rows), None)
        except BaseException:
            with suppress(StorageError):
                builder.abort(write_context, [])
            raise
        if first is None:
            builder.abort(write_context, [])
            return None
        return self._writes.write(write_context, _batches(first, changes), identifier)

    def _matching(self, base: Snapshot | None, condition: Filter | None) -> Iterator[pa.Table]:
        """Yield the matching rows, including rows of files that batch reads skip until they are compacted."""
        given = as_predicate(condition)
        valid = None if given is None else given.validated(self._schema)
        store = self._context.file_store
        plan = store.scan.plan(base, predicate=valid, only_compacted=False)
        for split in plan.splits(self._context.options.source_split_target_size_bytes):
            for batch in store.read.read(split, self._names, valid):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])

    def _whole_table(self, rows: Frame, verb: str) -> pa.Table:
        given = arrow_rows(self._name, rows, self._schema.arrow_schema)
        if self._kind_column in given.schema.names:
            message = (
                f"table {self._name}: {verb} gives each row its kind, so the rows have no column "
                f"{self._kind_column!r}; write a changelog with append"
            )
            raise InvalidInputError(message)
        table = pa.Table.from_batches(list(record_batches(given)), schema=given.schema)
        for name in table.column_names:
            if name not in self._names:
                raise self._no_column(name, verb)
        return self._conformed(table)

    def _conformed(self, table: pa.Table) -> pa.Table:
        """Convert the columns to the table's types, so that keys compare as stored keys do."""
        columns: dict[str, pa.Array] = {}
        for name in table.column_names:
            kind = self._schema.field(name).type
            column = table[name].combine_chunks()
            problem = misfit(column.type, kind, name)
            if problem is not None:
                message = f"table {self._name}: column {name!r} is {kind}, but the rows have {column.type}: {problem}"
                raise InvalidInputError(message)
            try:
                columns[name] = conformed(column, kind, name)
            except InvalidInputError as error:
                message = f"table {self._name}: {error}"
                raise InvalidInputError(message) from error
        return pa.table(columns)

    def _keys_of(self, rows: Frame) -> pa.Table:
        keys = self._whole_table(rows, "delete")
        return keys.select([name for name in self._schema.primary_keys if name in keys.column_names])

    def _refuse_repeated(self, rows: pa.Table, verb: str) -> None:
        keys = list(self._schema.primary_keys)
        missing = [name for name in keys if name not in rows.column_names]
        if missing:
            message = f"table {self._name}: {verb}: the rows lack {', '.join(map(repr, missing))} of the primary key"
            raise InvalidInputError(message)
        number = repeated_key(rows.select(keys))
        if number is not None:
            key = rows.select(keys).slice(number, 1).to_pylist()[0]
            message = f"table {self._name}: {verb}: several rows have the key {key}; give one row per key"
            raise InvalidInputError(message)

    def _refuse_merged_rows(self, verb: str) -> None:
        if self._schema.is_append_only:
            message = (
                f"table {self._name} is append-only, so {verb} cannot remove the rows that it changes; overwrite the "
                "partition without them, or create a table without write-mode=append-only"
            )
            raise InvalidInputError(message)
        engine = self._context.options.merge_engine
        if engine not in (MergeEngine.DEDUPLICATE, MergeEngine.VALUE_COUNT):
            message = (
                f"table {self._name}: with merge-engine={engine} a row that is written is merged into the stored one, "
                f"so {verb} cannot set its content; append what is to be merged, or overwrite"
            )
            raise InvalidInputError(message)

    def _refuse_no_condition(self, verb: str, condition: object) -> None:
        # A condition that a program failed to compute must not match every row.
        if condition is None:
            message = (
                f"table {self._name}: {verb}: the filter is None, which would match every row; if that is meant, write "
                "a filter that every row passes, such as IS NOT NULL on a NOT NULL column"
            )
            raise InvalidInputError(message)

    def _refuse_unknown(self, name: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            message = f"table {self._name}: merge: {name} is one of {', '.join(known)}, not {value!r}"
            raise InvalidInputError(message)

    def _no_column(self, name: str, verb: str) -> InvalidInputError:
        message = f"table {self._name}: {verb}: there is no column {name!r}{did_you_mean(name, self._names)}"
        return InvalidInputError(message)

    def _value_of(self, name: str, value: object) -> pa.Scalar | pl.Expr:
        if name not in self._names:
            raise self._no_column(name, "update")
        if name in self._schema.primary_keys:
            message = (
                f"table {self._name}: update: column {name!r} is part of the primary key, which identifies the row; "
                "delete the row and insert the new one"
            )
            raise InvalidInputError(message)
        if isinstance(value, pl.Expr):
            return value
        field = self._schema.field(name)
        arrow = field.type.arrow
        if value is None:
            if not field.type.nullable:
                message = f"table {self._name}: update: column {name!r} is NOT NULL, so it cannot be set to None"
                raise InvalidInputError(message)
            return pa.scalar(None, arrow)
        scalar = exact_scalar(value if is_nested(field.type) else typed_literal(value, field), arrow)
        if scalar is None:
            message = (
                f"table {self._name}: update: column {name!r} is {field.type}, which cannot hold exactly {value!r}; "
                "round or convert the value"
            )
            raise InvalidInputError(message)
        return scalar

    def _evaluated(self, frame: pl.DataFrame, name: str, value: pl.Expr) -> pa.ChunkedArray:
        try:
            is_of_one_row, series = computed_by_row(frame, value)
        except pl.exceptions.PolarsError as error:
            message = f"table {self._name}: update: the value of column {name!r} cannot be computed: {error}"
            raise InvalidInputError(message) from error
        if not is_of_one_row:
            message = (
                f"table {self._name}: update: the value of column {name!r}, {value}, depends on other rows than its "
                "own; use an expression that has one value per row, or compute the rows and write them with upsert"
            )
            raise InvalidInputError(message)
        return pa.chunked_array([series.to_arrow()])

    def _in_pairs(self, before: pa.Table, after: pa.Table) -> pa.Table:
        """Return each old row followed by its new one: the log has such a pair as one record."""
        count = before.num_rows
        in_turn = pa.array(np.arange(2 * count).reshape(2, count).T.ravel())
        rows = pa.table(
            {
                name: pa.concat_arrays([*before[name].chunks, *after[name].chunks]).take(in_turn)
                for name in before.column_names
            }
        )
        symbols = [ROW_KIND_SYMBOLS[kind] for kind in (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER)]
        return rows.append_column(pa.field(self._kind_column, pa.string()), pa.array(symbols * count, pa.string()))

    def _with_kind(self, rows: pa.Table, kind: RowKind) -> pa.Table:
        symbol = pa.repeat(pa.scalar(ROW_KIND_SYMBOLS[kind], pa.string()), rows.num_rows)
        return rows.append_column(pa.field(self._kind_column, pa.string()), symbol)


def _as_rows(which: Filter | Frame) -> Frame | None:
    return None if isinstance(which, str | Predicate | pl.Expr | pc.Expression) else which


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(rows)


def _batches(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    yield from first.to_batches()
    for rows in rest:
        yield from rows.to_batches()
