"""The files of a plan that Spark reads natively, as one data frame for each group of files that are read alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import ByteType, StructField, StructType

from storage_lib.file_store.data_file.key_value import VALUE_KIND
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.batch.native_files import FileGroup, group_of
from storage_lib.spark.native.deleted_rows import DELETED_ROWS_MAX, can_leave_out, without_deleted
from storage_lib.spark.native.file_relation import StoredFile, relation_of
from storage_lib.spark.native.hadoop_files import hadoop_options, hadoop_path, is_reached, store_of
from storage_lib.spark.native.native_columns import NativeColumn, native_columns
from storage_lib.spark.translation.predicate_column import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.read.unmerged_file import UnmergedFile

_STANDING = [int(RowKind.INSERT), int(RowKind.UPDATE_AFTER)]


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
    catalog: Mapping[str, str],
) -> list[NativeGroup]:
    """Return the groups that Spark's own readers read right, with the columns ``names``; leave out all others."""
    by_group: dict[FileGroup, list[UnmergedFile]] = {}
    for file in files:
        by_group.setdefault(group_of(file), []).append(file)
    found: list[NativeGroup] = []
    for key, members in sorted(by_group.items()):
        wanted = set(names)
        stored = [each for each in read.stored_columns(key.schema_id).columns if each.wanted.name in wanted]
        columns = native_columns(stored, key.extension)
        if columns is not None and _is_readable(spark, key, members, names, catalog):
            in_order = {each.name: each for each in columns}
            found.append(NativeGroup(key, tuple(in_order[name] for name in names), tuple(members)))
    return found


def frame_of(spark: SparkSession, read: ReadBuilder, group: NativeGroup, catalog: Mapping[str, str]) -> DataFrame:
    """Return the table's rows in a group's files, with the group's columns."""
    fields = [each.stored for each in group.columns if each.stored is not None]
    kinds = [StructField(VALUE_KIND, ByteType(), nullable=False)] if group.key.has_retracts else []
    files = [StoredFile(hadoop_path(file.path), file.size_bytes) for file in group.files]
    options = hadoop_options(group.files[0].path, catalog)
    df = relation_of(spark, files, StructType([*fields, *kinds]), group.key.extension, options)
    if group.key.has_deleted_rows:
        deleted = [(file.entry.file.file_name, read.deleted_rows(file)) for file in group.files]
        df = without_deleted(df, deleted)
    if kinds:
        df = df.where(quoted(VALUE_KIND).isin(_STANDING))
    if kinds or not all(each.is_read_as_it_is for each in group.columns):
        df = df.select(*[each.value() for each in group.columns])
    return df


def _is_readable(
    spark: SparkSession,
    key: FileGroup,
    files: Sequence[UnmergedFile],
    names: Sequence[str],
    catalog: Mapping[str, str],
) -> bool:
    metas = [file.entry.file for file in files]
    if any(meta.write_cols is not None for meta in metas):
        return False
    if key.has_retracts and VALUE_KIND in names:
        return False
    if key.has_deleted_rows:
        counts = [meta.deletion_file.row_count for meta in metas if meta.deletion_file is not None]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts) or sum(known) > DELETED_ROWS_MAX or key.extension != "parquet":
            return False
        if not can_leave_out([meta.file_name for meta in metas], names):
            return False
    stores = {store_of(file.path): file.path for file in files}
    return all(is_reached(spark, path, hadoop_options(path, catalog)) for path in stores.values())
