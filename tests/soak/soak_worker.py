"""One process of the soak: a writer, a compaction or a reader. It resumes from its notes and runs until killed."""

from __future__ import annotations

import json
import os
import time
import traceback
from pathlib import Path

import pyarrow as pa

from storage_lib import CommitConflictError, DynamicTable, RetryableError, StreamPosition
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from tests.soak.eventual_model import EVENTUAL_STREAM, EVENTUAL_TABLE, EVENTUAL_WRITERS, eventual_rows
from tests.soak.soak_model import OVERWRITE, OVERWRITTEN, SILENT, UNTRACKED, rows_of
from tests.support.moved_clock import moved_environment
from tests.support.orders_table import NAME

COMPACTION, READER = "compaction", "reader"
TIERING = "tiering"
EVENTUAL_ROLES = (*EVENTUAL_WRITERS, TIERING)
_SNAPSHOTS_KEPT = 300
_KEPT_MS = 60_000


def work(role: str, warehouse: str, servers: str, seed: int, notes: str, clock_is_ahead_by: float) -> None:
    """Run ``role``; ``notes`` is a directory. A fatal error is written to ``<role>.error``, next to the notes.

    The clock is ``clock_is_ahead_by`` seconds ahead, or behind if negative.
    """
    try:
        environment = moved_environment(clock_is_ahead_by)
        options = {"log.kafka.bootstrap.servers": servers}
        table = WarehouseCatalog(warehouse, options, environment=environment).load_table(
            EVENTUAL_TABLE if role in EVENTUAL_ROLES else NAME
        )
        while True:
            try:
                _do(role, table, seed, Path(notes))
            except RetryableError:
                time.sleep(0.05)
    except BaseException:
        (Path(notes) / f"{role}.error").write_text(traceback.format_exc())
        raise


def _do(role: str, table: DynamicTable, seed: int, notes: Path) -> None:
    if role == COMPACTION:
        _care(table)
    elif role == READER:
        read_on(table, notes)
        time.sleep(0.05)
    elif role == TIERING:
        table.maintenance.tier_log()
        _care(table)
    else:
        number = acknowledged(notes, role) + 1
        _commit(role, table, seed, number)
        note(notes / role, str(number))


def _commit(role: str, table: DynamicTable, seed: int, number: int) -> None:
    rows = eventual_rows(seed, role, number) if role in EVENTUAL_WRITERS else rows_of(seed, role, number)
    identity = {"commit_user": role, "commit_identifier": number}
    if role == OVERWRITE:
        table.overwrite(rows, partition={"dt": OVERWRITTEN}, change_tracking=True, **identity)  # type: ignore[arg-type]
        time.sleep(0.3)
    elif role == UNTRACKED:
        table.overwrite(rows, partition={"dt": SILENT}, change_tracking=False, **identity)  # type: ignore[arg-type]
        time.sleep(0.2)
    elif role == EVENTUAL_STREAM:
        append_to_log(table, rows, role, number)
        time.sleep(0.05)
    else:
        table.append(rows, **identity)  # type: ignore[arg-type]


def append_to_log(table: DynamicTable, rows: pa.Table, name: str, number: int) -> None:
    """Append rows to the log only, as a stream that leaves the files to tiering."""
    order = table.new_write().begin(commit_user=name)
    with table.new_write().open_task(order) as write:
        write.write(rows)
        table.new_write().commit(order, [write.prepare_commit()], commit_identifier=number, defers_tiering=True)


def _care(table: DynamicTable) -> None:
    try:
        table.compact()
    except CommitConflictError:
        return
    # The clock may be an hour ahead; expiry must keep all needed snapshots regardless.
    older_than = table.environment.clock.now_millis() - _KEPT_MS
    table.maintenance.expire_snapshots(retain_last=_SNAPSHOTS_KEPT, older_than_millis=older_than)
    time.sleep(0.4)


def acknowledged(notes: Path, role: str) -> int:
    """Return the number of the last commit that this writer knows to be complete."""
    path = notes / role
    return int(path.read_text()) if path.exists() else 0


def read_on(table: DynamicTable, notes: Path) -> dict[str, int]:
    """Follow the stream to its end; return the rows by ``"a 7"``. Position and content are saved in one note."""
    path = notes / READER
    content: dict[str, int] = {}
    source = table.stream(startup="full")
    if path.exists():
        noted = json.loads(path.read_text())
        content = noted["content"]
        source.position = StreamPosition.from_json(noted["position"])
    while (batch := source.poll()) is not None:
        for row in batch.to_pylist():
            key = f"{row['dt']} {row['id']}"
            if row["_row_kind"] in ("+I", "+U"):
                content[key] = row["price"]
            else:
                content.pop(key, None)
        assert source.position is not None
        note(path, json.dumps({"position": source.position.to_json(), "content": content}))
    return content


def note(path: Path, text: str) -> None:
    """Write the file atomically."""
    aside = path.with_suffix(f".{os.getpid()}")
    aside.write_text(text)
    aside.replace(path)
