"""Metadata of data files that do not exist, for deciding without I/O. Keys are single numbers."""

from __future__ import annotations

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, SimpleStats

NO_STATS = SimpleStats(min_values=b"", max_values=b"", null_counts=())


def number_key(key: int) -> bytes:
    """A key, serialized so that `compare_numbers` reads it."""
    return key.to_bytes(8, "big")


def compare_numbers(key: bytes) -> tuple[int]:
    """The comparable form of `number_key`."""
    return (int.from_bytes(key, "big"),)


def file_meta(
    name: str,
    low: int = 0,
    high: int = 0,
    *,
    size: int = 1,
    level: int = 0,
    sequence: tuple[int, int] = (0, 0),
    deletes: int | None = 0,
) -> DataFileMeta:
    """A file of one key interval and one sequence interval."""
    return DataFileMeta(
        file_name=name,
        file_size=size,
        row_count=1,
        min_key=number_key(low),
        max_key=number_key(high),
        key_stats=NO_STATS,
        value_stats=NO_STATS,
        min_sequence_number=sequence[0],
        max_sequence_number=sequence[1],
        schema_id=0,
        level=level,
        delete_row_count=deletes,
    )
