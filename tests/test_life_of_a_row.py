"""FIRST TO READ: one row through every part of the library, from a write to a batch read and a stream read."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from storage_lib import MemoryCatalog, RowKind, col
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties


def test_one_row_from_write_to_both_ways_of_reading() -> None:
    # A table: one directory of files, one log.
    catalog = MemoryCatalog()
    columns = pa.schema([("dt", pa.string()), ("id", pa.int64()), ("price", pa.decimal128(10, 2))])
    table = catalog.create_table("shop.orders", columns, primary_key=["dt", "id"], partition_by=["dt"])

    # WRITE: the driver takes the lease, a task writes the row to its bucket's memtable and to the log,
    row = pa.table({"dt": ["2013-01-05"], "id": [7], "price": ["9.50"]}).cast(columns)
    write_context = table.new_write().begin(commit_user="reader of this test")
    task = table.new_write().open_task(write_context)
    task.write(row)
    # and flushes both: the file is durable, the log transaction open. No reader sees the row yet.
    message = task.prepare_commit()
    (files,) = message.files
    (transaction,) = message.transactions
    (data_file,) = files.increment.new_files
    assert (data_file.level, data_file.row_count) == (0, 1)
    assert table.to_arrow().num_rows == 0
    assert table.log is not None
    assert not table.log.is_committed(transaction.written)

    # COMMIT: creating the snapshot decides for both stores; then the log transaction that it names is ended.
    snapshot = table.new_write().commit(write_context, [message], commit_identifier=1)
    assert snapshot is not None
    part = SnapshotLogProperties.of_snapshot(snapshot)
    assert part is not None
    assert part.transactions == (transaction,)
    assert table.log.is_committed(transaction.written)

    # READ: the snapshot's live files, merged by key.
    assert table.to_arrow(filter=col("id") == 7).to_pylist() == row.to_pylist()

    # UPDATE and DELETE are rows with a kind; the newest version of a key wins.
    source = table.stream()
    first = source.poll()
    assert first is not None
    assert first.to_pylist() == [{**row.to_pylist()[0], "_row_kind": RowKind.INSERT.symbol}]
    table.append(row.set_column(2, "price", pa.array(["8.00"]).cast(pa.decimal128(10, 2))))
    table.append(row.append_column("_row_kind", pa.array([RowKind.DELETE.symbol])))
    assert table.to_arrow().num_rows == 0

    # STREAM: first the snapshot (above), then the log from the offsets stored in it.
    changes = source.poll()
    assert changes is not None
    assert changes.column("_row_kind").to_pylist() == ["+I", "-D"]
    assert changes.column("price").to_pylist() == [Decimal("8.00"), Decimal("9.50")]
    assert source.poll() is None
