"""A source whose records are rows of ``orders`` or do not fit it, and the check that a table has each of them once."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from storage_lib import DynamicTable, SourceRange
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA

SOURCE = "changes"
PARTITIONS = "abc"


def does_fit(offset: int) -> bool:
    """Return whether the record at this offset fits the table; about two thirds do, sometimes none for a while."""
    return (offset * 7919 % 31) % 3 != 0 and offset // 20 % 5 != 2


def rows_of(offsets: Iterable[int]) -> pa.Table:
    """Return the rows of records, each with its offset as id."""
    ids = list(offsets)
    return pa.table(
        {
            "dt": pa.array([PARTITIONS[each % 3] for each in ids], pa.string()),
            "id": pa.array(ids, pa.int64()),
            "price": pa.array([each * 10 for each in ids], pa.int64()),
        }
    )


def rejected_of(offsets: Iterable[int]) -> pa.Table:
    """Return records as rejected ones."""
    records = [
        {
            "time_millis": None,
            "source": SOURCE,
            "topic": SOURCE,
            "partition": 0,
            "offset": offset,
            "timestamp_millis": 1000 + offset,
            "key": None if offset % 4 == 0 else str(offset).encode(),
            "value": f"record {offset}".encode(),
            "column": None if offset % 5 == 0 else "price",
            "reason": f"offset {offset} does not fit",
        }
        for offset in offsets
    ]
    return pa.Table.from_pylist(records, schema=REJECTED_SCHEMA)


def read_on(table: DynamicTable, count: int, identifier: int | None = None) -> Snapshot | None:
    """Commit the next ``count`` records of the source, as ``ingest`` does."""
    reached = table.inspect.source_offsets(SOURCE)
    start = 0 if reached is None else reached.of(0)
    offsets = range(start, start + count)
    return table.append(
        rows_of(each for each in offsets if does_fit(each)),
        source=SourceRange(source=SOURCE, start=reached, end=LogOffsets({0: start + count})),
        rejected=rejected_of(each for each in offsets if not does_fit(each)),
        commit_user=None if identifier is None else "reader",
        commit_identifier=identifier,
    )


def reingest_some(table: DynamicTable, offsets: Iterable[int], identifier: int | None = None) -> Snapshot | None:
    """Commit stored rejected records as rows: those with these offsets."""
    wanted = set(offsets)
    chosen = [each for each in table.inspect.rejected().to_pylist() if each["offset"] in wanted]
    return table.append(
        rows_of(each["offset"] for each in chosen),
        resolved=[each["id"] for each in chosen],
        commit_user=None if identifier is None else "mender",
        commit_identifier=identifier,
    )


def check_each_record_once(table: DynamicTable) -> tuple[list[int], list[int]]:
    """Check that the rows and the rejected records are those before the table's offset; return both.

    The rejected ones are as they were given, and as many as the metadata says.
    """
    reached = table.inspect.source_offsets(SOURCE)
    end = 0 if reached is None else reached.of(0)
    accepted = sorted(table.to_arrow()["id"].to_pylist())
    rejected = table.inspect.rejected().sort_by("offset")
    refused = rejected["offset"].to_pylist()
    assert sorted([*accepted, *refused]) == list(range(end))
    assert not [each for each in refused if does_fit(each)]
    given = rejected_of(refused)
    for name in ("source", "topic", "partition", "key", "value", "column", "reason"):
        assert rejected[name].to_pylist() == given[name].to_pylist()
    assert rejected["timestamp"].cast(pa.int64()).to_pylist() == given["timestamp_millis"].to_pylist()
    assert len(set(rejected["id"].to_pylist())) == len(refused) == table.inspect.rejected_count()
    return accepted, refused


def files_of_rejected(table: DynamicTable) -> set[str]:
    """Return the names of the files in the table's directory of rejected records."""
    return {each.name for each in table.environment.file_io.list_directory(f"{table.location}/rejected")}
