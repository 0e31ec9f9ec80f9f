"""One bucket of one table with its writer, reader and compactor, on any storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.data_file.stored_columns import ColumnResolution
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy
from storage_lib.file_store.merge_tree.compaction.compactor import Compactor
from storage_lib.file_store.merge_tree.levels import Levels, levels_of
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_tree_reader import MERGE_BYTES_MAX, read_merged
from storage_lib.file_store.merge_tree.merge_tree_writer import MergeTreeWriter
from storage_lib.file_store.merge_tree.overwrite_writer import OverwriteWriter
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_type

LEVEL_COUNT = 6
PARQUET = ParquetFormat()


@dataclass
class BucketOnDisk:
    """State of a bucket after its commits, without snapshots: `files` are the live ones."""

    schema: TableSchema
    environment: Environment
    root: str = "/table"
    target_file_size: int = 128 * 1024 * 1024
    memtable_bytes_max: int = 256 * 1024 * 1024
    merge_bytes_max: int = MERGE_BYTES_MAX
    file_format: ParquetFormat = PARQUET
    merge_function: MergeFunction = DEDUPLICATE
    files: tuple[DataFileMeta, ...] = field(default=())

    def __post_init__(self) -> None:
        """Create the paths, schemas and factories."""
        paths = TablePaths(self.root)
        self.key_value = KeyValueSchema(schema=self.schema)
        self.data_files = DataFileWriter(
            layout=self.key_value,
            file_format=self.file_format,
            environment=self.environment,
            paths=paths,
            partition_path="",
            bucket=0,
            target_file_size=self.target_file_size,
        )
        schemas = SchemaVersions(self.schema, SchemaHistory(self.environment.file_io, paths))
        self.reader = DataFileReader(
            layout=self.key_value,
            schemas=schemas,
            columns=ColumnResolution(self.key_value, schemas),
            formats=[self.file_format],
            environment=self.environment,
            paths=paths,
            partition_path="",
            bucket=0,
        )

    @property
    def levels(self) -> Levels:
        """Live files by level."""
        return levels_of(self.files, level_count=LEVEL_COUNT, comparable_key=self.key_value.comparable_key)

    def writer(self) -> MergeTreeWriter:
        """Return a writer on top of the live files."""
        return MergeTreeWriter(
            key_value=self.key_value,
            data_files=self.data_files,
            next_sequence=self.levels.max_sequence_number + 1,
            memtable_bytes_max=self.memtable_bytes_max,
            merge_function=self.merge_function,
        )

    def overwriter(self) -> OverwriteWriter:
        """Return a writer that overwrites the bucket."""
        return OverwriteWriter(
            key_value=self.key_value,
            data_files=self.data_files,
            reader=self.reader,
            top_level=LEVEL_COUNT - 1,
            memtable_bytes_max=self.memtable_bytes_max,
            merge_function=self.merge_function,
        )

    def compactor(self) -> Compactor:
        """Return a compactor of this bucket."""
        return Compactor(
            key_value=self.key_value,
            reader=self.reader,
            data_files=self.data_files,
            merge_bytes_max=self.merge_bytes_max,
            merge_function=self.merge_function,
        )

    def batch(self, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        """Convert tuples to a record batch of the schema."""
        fields = list(self.schema.arrow_schema)
        columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(fields)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema.arrow_schema)

    def commit(self, rows: Sequence[Sequence[Any]], kinds: Sequence[RowKind] | None = None) -> None:
        """Write the rows as one commit."""
        writer = self.writer()
        writer.write(self.batch(rows), row_kinds(kinds or [RowKind.INSERT] * len(rows)))
        self.files = self.levels.apply(writer.prepare_commit()).files

    def compact(self, strategy: CompactionStrategy) -> bool:
        """Run one compaction if one is due; return whether one ran."""
        unit = strategy.pick(self.levels)
        if unit is None:
            return False
        self.files = self.levels.apply(self.compactor().compact(unit)).files
        return True

    def rows(
        self, columns: Sequence[str] | None = None, predicate: Predicate | None = None, **options: Any
    ) -> list[Any]:
        """Return the merged rows as tuples, in the order in which they are read."""
        return [
            tuple(row.values()) for batch in self.batches(columns, predicate, **options) for row in batch.to_pylist()
        ]

    def batches(
        self, columns: Sequence[str] | None = None, predicate: Predicate | None = None, **options: Any
    ) -> list[pa.RecordBatch]:
        """Return the merged rows as record batches."""
        names = list(columns if columns is not None else self.key_value.value_names)
        return list(
            read_merged(
                self.files,
                reader=self.reader,
                key_value=self.key_value,
                merge_function=self.merge_function,
                columns=names,
                predicate=predicate,
                **{"merge_bytes_max": self.merge_bytes_max, **options},
            )
        )


def row_kinds(kinds: Sequence[RowKind]) -> pa.Int8Array:
    """Return row kinds as the codes that writers accept."""
    return pa.array([int(kind) for kind in kinds], pa.int8())


def schema_of(columns: str, keys: Sequence[str]) -> TableSchema:
    """Parse a schema from text: ``id BIGINT; name STRING``."""
    typed = [column.strip().split(" ", 1) for column in columns.split(";")]
    return new_table_schema(
        [(name, parse_type(spelled)) for name, spelled in typed],
        primary_keys=keys,
        options={"bucket": "1"},
        time_millis=0,
    )
