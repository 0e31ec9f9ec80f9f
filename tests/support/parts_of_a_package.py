"""Third-party extensions: data files in Arrow's IPC format, a log in memory, a catalog that records loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.catalog.added_log import LogRequest
from storage_lib.errors import CorruptFileError
from storage_lib.format.batch_statistics import BatchStatistics
from storage_lib.format.file_format import RowTest
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.filter.predicate import Predicate


class FeatherFormat:
    """Arrow IPC files; each row group is one record batch."""

    extension = "feather"

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Accept every schema: Arrow's own format supports every type."""

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> FeatherWriter:
        return FeatherWriter(output, schema)

    def reader(self, source: pa.NativeFile, path: str) -> FeatherReader:
        try:
            return FeatherReader(pa.ipc.open_file(source))
        except pa.ArrowInvalid as error:
            message = f"{path} is not a readable Feather file ({error})"
            raise CorruptFileError(message) from error


class FeatherWriter:
    row_group_rows = 64 * 1024

    def __init__(self, output: pa.NativeFile, schema: pa.Schema) -> None:
        self._output = output
        self._writer = pa.ipc.new_file(output, schema)
        self._statistics = BatchStatistics(schema)

    @property
    def size_bytes(self) -> int:
        return int(self._output.tell())

    def write(self, rows: pa.Table) -> None:
        self._statistics.add(rows)
        self._writer.write_table(rows)

    def close(self) -> Mapping[str, ColumnStats]:
        self._writer.close()
        return self._statistics.result()

    def abandon(self) -> None:
        """Do nothing: the writer holds only the output."""


class FeatherReader:
    def __init__(self, file: pa.ipc.RecordBatchFileReader) -> None:
        self._file = file

    @property
    def row_count(self) -> int:
        return sum(self._file.get_batch(index).num_rows for index in range(self._file.num_record_batches))

    @property
    def column_names(self) -> Sequence[str]:
        return list(self._file.schema.names)

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        row_test: RowTest | None = None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        wanted = [name for name in self._file.schema.names if name in columns]
        for index in range(self._file.num_record_batches):
            batch = self._file.get_batch(index).select(wanted)
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)


def log_in_memory(request: LogRequest) -> MemoryLogStore:
    """Create a log whose name begins with option ``log.ramdisk.prefix``."""
    prefix = request.others.get("log.ramdisk.prefix", "none")
    return MemoryLogStore(
        request.schema,
        f"{prefix}/{request.table}",
        request.table_uuid,
        request.clock,
        changelog_mode=request.changelog_mode,
        retention_ms=request.retention_ms,
        transaction_timeout_ms=request.transaction_timeout_ms,
    )


class RememberingCatalog(WarehouseCatalog):
    """Records the tables that were loaded."""

    loaded: list[str]

    def load_table(self, name: str) -> DynamicTable:
        self.loaded = [*getattr(self, "loaded", []), name]
        return super().load_table(name)


ENTRY_POINTS = f"""\
[dynamic_tables.file_formats]
feather = {__name__}:FeatherFormat

[dynamic_tables.log_systems]
ramdisk = {__name__}:log_in_memory
lost = {__name__}:no_such_name

[dynamic_tables.catalogs]
remembering = {__name__}:RememberingCatalog
"""


def install_into(site: Path, name: str = "table-parts") -> None:
    """Write the minimal metadata with which Python finds the package's entry points once ``site`` is on its path."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
