"""The files of a plan that Spark reads natively, as one data frame for each group of files that are read alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import ByteType, StructField, StructType

from storage_lib.file_store.data_file.key_value import VALUE_KIND
from storage_lib.schema.encoding.binary_row import decode_row
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.data_source.natively_read_files import FileGroup, group_of
from storage_lib.spark.reading.file_relation import PartitionValues, StoredFile, relation_of
from storage_lib.spark.reading.hadoop_files import hadoop_options, hadoop_path, is_reached, store_of
from storage_lib.spark.reading.native_columns import (
    EXACT_TIMES,
    NativeColumn,
    are_told_apart,
    native_columns,
    null_column,
)
from storage_lib.spark.reading.without_rows import can_leave_rows_out, left_out_bits
from storage_lib.table.read.left_out_rows import LeftOutRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.read.unmerged_file import UnmergedFile

_STANDING = f"`{VALUE_KIND}` IN ({int(RowKind.INSERT)}, {int(RowKind.UPDATE_AFTER)})"


@dataclass(frozen=True, slots=True)
class NativeGroup:
    """Files that are read alike, and how."""

    key: FileGroup
    columns: tuple[NativeColumn, ...]
    files: tuple[UnmergedFile, ...]

    @property
    def size_bytes(self) -> int:
        """Size of the files on storage."""
        return sum(file.size_bytes for file in self.files)


def native_groups(
    spark: SparkSession,
    read: ReadBuilder,
    files: Iterable[UnmergedFile],
    names: Sequence[str],
    needed: Collection[str],
    catalog: Mapping[str, str],
    *,
    leaves_rows_out: bool = False,
) -> list[NativeGroup]:
    """Return the groups that Spark's own readers read right, with the columns ``names``; leave out all others.

    Columns that are not ``needed`` are null. ``leaves_rows_out``: ``frame_of`` is going to get rows to leave out.
    """
    by_group: dict[FileGroup, list[UnmergedFile]] = {}
    for file in files:
        by_group.setdefault(group_of(file.entry.file), []).append(file)
    has_exact_times = (spark.conf.get(EXACT_TIMES, "false") or "false").lower() == "true"
    found: list[NativeGroup] = []
    for key, members in sorted(by_group.items()):
        stored = {each.wanted.name: each for each in read.stored_columns(key.schema_id).columns}
        wanted = [stored[name] for name in names if name in needed]
        columns = native_columns(wanted, key.extension, has_exact_times=has_exact_times)
        if columns is None or not are_told_apart(stored.values()):
            continue
        if leaves_rows_out or key.has_deleted_rows:
            there = {*names, *read.names_in_files(key.schema_id)}
            if not can_leave_rows_out(key.extension, _row_count(members), there):
                continue
        if _is_readable(spark, members, catalog):
            by_name = {each.name: each for each in columns}
            in_order = (by_name.get(name) or null_column(stored[name]) for name in names)
            found.append(NativeGroup(key, tuple(in_order), tuple(members)))
    return found


def frame_of(
    spark: SparkSession,
    read: ReadBuilder,
    schema: TableSchema,
    group: NativeGroup,
    catalog: Mapping[str, str],
    left_out: Mapping[str, LeftOutRows] = MappingProxyType({}),
) -> DataFrame:
    """Return the table's rows in a group's files, with the group's columns.

    ``left_out`` are rows of files, by file name, that are not rows of the table. Those of deletion vectors are left out
    too.
    """
    files = [StoredFile(hadoop_path(file.path), file.size_bytes) for file in group.files]
    partitions = _partitions_of(schema, group, files)
    of_path = set() if partitions is None else set(partitions.struct.fieldNames())
    fields = [each.stored for each in group.columns if each.stored is not None and each.name not in of_path]
    kinds = [StructField(VALUE_KIND, ByteType(), nullable=False)] if group.key.has_retracts else []
    options = hadoop_options(group.files[0].path, catalog)
    bits = _left_out_of(read, group, left_out)
    names = [each.name for each in group.columns]
    given = [each.name for each in fields] + ([] if partitions is None else partitions.struct.fieldNames())
    is_as_it_is = all(each.is_read_as_it_is or each.name in of_path for each in group.columns)
    is_whole = bits is None and not kinds and given == names and is_as_it_is
    return relation_of(
        spark,
        files,
        StructType([*fields, *kinds]),
        group.key.extension,
        options,
        partitions,
        left_out=None if bits is None else left_out_bits(bits),
        condition=_STANDING if kinds else None,
        columns=None if is_whole else [_own(each) if each.name in of_path else each for each in group.columns],
    )


def _left_out_of(
    read: ReadBuilder, group: NativeGroup, left_out: Mapping[str, LeftOutRows]
) -> list[LeftOutRows] | None:
    """Return the rows to leave out of each file of the group; None: all rows stay."""
    metas = [file.entry.file for file in group.files]
    if group.key.has_deleted_rows:
        deleted = (read.deleted_rows(file) for file in group.files)
        return [LeftOutRows.at(each, meta.row_count) for each, meta in zip(deleted, metas, strict=True)]
    return [left_out[meta.file_name] for meta in metas] if left_out else None


def _own(column: NativeColumn) -> NativeColumn:
    """Return a column that Spark has by its name, as a value of the directory."""
    return replace(column, stored=StructField(column.name, column.type), hides_from_pushdown=False)


def _partitions_of(schema: TableSchema, group: NativeGroup, files: Sequence[StoredFile]) -> PartitionValues | None:
    """Return the values of the wanted partition columns; None if there are none.

    The files have these values as well, so a read without them is right, but opens more files.
    """
    wanted = {each.name: each for each in group.columns}
    fields = schema.partition_fields
    places = [place for place, field in enumerate(fields) if field.name in wanted]
    if not places:
        return None
    columns = [wanted[fields[place].name] for place in places]
    if not all(
        each.stored is not None and (each.stored.name, each.stored.dataType) == (each.name, each.type)
        for each in columns
    ):
        return None
    numbers: dict[bytes, int] = {}
    of_directory: dict[str, int] = {}
    for file, stored in zip(group.files, files, strict=True):
        number = numbers.setdefault(file.entry.partition, len(numbers))
        if of_directory.setdefault(stored.directory, number) != number:
            return None  # an external directory with files of several partitions
    values = [decode_row(partition, [field.type for field in fields]) for partition in numbers]
    arrays = [pa.array([row[place] for row in values], fields[place].type.arrow) for place in places]
    rows = pa.table(arrays, names=[each.name for each in columns])
    return PartitionValues(StructType([each.stored for each in columns if each.stored]), rows, of_directory)


def _row_count(files: Sequence[UnmergedFile]) -> int:
    return sum(file.entry.file.row_count for file in files)


def _is_readable(spark: SparkSession, files: Sequence[UnmergedFile], catalog: Mapping[str, str]) -> bool:
    if any(file.entry.file.write_cols is not None for file in files):
        return False
    stores = {store_of(file.path): file.path for file in files}
    return all(is_reached(spark, path, hadoop_options(path, catalog)) for path in stores.values())
