"""Metadata of data files that do not exist, for logic that needs no I/O. Keys are single numbers."""

from __future__ import annotations

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, SimpleStats

NO_STATS = SimpleStats(min_values=b"", max_values=b"", null_counts=())


def number_key(key: int) -> bytes:
    """Serialize a key so that `compare_numbers` can read it."""
    return key.to_bytes(8, "big")


def compare_numbers(key: bytes) -> tuple[int]:
    """Return the comparable form of a `number_key`."""
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
    """Return the metadata of a file with one key interval and one sequence interval."""
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
