"""Files of rejected records and their lists, in one directory of the table. Files are never changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.rejected.rejected_list import RejectedFile, decode_list, encode_list, pointer_to
from storage_lib.schema.types.rejected_schema import STORED_SCHEMA

if TYPE_CHECKING:
    from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
    from storage_lib.io.environment import Environment
    from storage_lib.io.table_directory.table_paths import TablePaths

_LISTS_CACHED = 64


class RejectedDirectory:
    """Reads and writes the files; all branches of a table share them, as they share data files."""

    def __init__(self, environment: Environment, paths: TablePaths) -> None:
        self._environment = environment
        self._paths = paths
        self._lists: OrderedDict[str, tuple[RejectedFile, ...]] = OrderedDict()

    def files_of(self, pointer: RejectedPointer) -> tuple[RejectedFile, ...]:
        """Return the files of a list, oldest first.

        Raises ``NotFoundError`` if the list expired with the last snapshot that names it, ``CorruptFileError`` if it is
        damaged.
        """
        name = pointer.list_name
        known = self._lists.get(name)
        if known is None:
            path = self._paths.rejected_path(name)
            known = decode_list(self._environment.file_io.read_bytes(path), path)
            self._remember(name, known)
        return known

    def read(self, pointer: RejectedPointer, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the records file by file, oldest first; ``STORED_SCHEMA``, or some of its columns."""
        for each in self.files_of(pointer):
            yield self.read_file(each.name, columns)

    def read_file(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the records of one file."""
        path = self._paths.rejected_path(name)
        wanted = STORED_SCHEMA.names if columns is None else list(columns)
        with self._environment.file_io.open_input(path) as source:
            try:
                found = pq.ParquetFile(source, page_checksum_verification=True).read(wanted)
                return found.cast(pa.schema([STORED_SCHEMA.field(each) for each in wanted]))
            except (OSError, ValueError, pa.ArrowException) as error:
                message = f"{path} with rejected records can't be read: {error}"
                raise CorruptFileError(message) from error

    def write_file(self, records: pa.Table, *, oldest_millis: int, newest_millis: int) -> RejectedFile:
        """Write records to a new file. Durable."""
        name = self._paths.new_rejected_file_name(self._environment.new_name())
        sink = pa.BufferOutputStream()
        pq.write_table(records, sink, compression="zstd", write_page_checksum=True)
        data = sink.getvalue().to_pybytes()
        self._environment.file_io.write_bytes(self._paths.rejected_path(name), data)
        return RejectedFile(
            name=name,
            record_count=records.num_rows,
            size_bytes=len(data),
            oldest_millis=oldest_millis,
            newest_millis=newest_millis,
        )

    def write_list(self, files: Sequence[RejectedFile]) -> RejectedPointer:
        """Write a new list of at least one file, and return a pointer to it. Durable."""
        name = self._paths.new_rejected_list_name(self._environment.new_name())
        self._environment.file_io.write_bytes(self._paths.rejected_path(name), encode_list(files))
        self._remember(name, tuple(files))
        return pointer_to(name, files)

    def delete(self, name: str) -> None:
        """Delete a list or a file that no snapshot names, if it exists."""
        self._environment.file_io.delete(self._paths.rejected_path(name), below=self._paths.root)

    def _remember(self, name: str, files: tuple[RejectedFile, ...]) -> None:
        self._lists[name] = files
        while len(self._lists) > _LISTS_CACHED:
            self._lists.popitem(last=False)
