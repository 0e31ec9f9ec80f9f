"""If any disk call of any verb fails, the error reports correctly whether the change happened.

The caller then follows the error: it repeats a change that has not happened, looks up an unknown outcome, and leaves
a completed change. In the end every row exists exactly once, and the table can be written to.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pytest

from storage_lib import AddColumn, AlreadyExistsError, DynamicTable, MemoryCatalog, NotFoundError, StorageError
from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.table.protocol.outcome import reports_outcome
from tests.support.fake_environment import fake_environment
from tests.support.faulty_disk import FaultyDisk
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, NAME, content, orders, reopened, rows

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
EVERY_CODE = os.environ.get("EVERY_ERROR") == "1"
"""Whether to test each call with each error (ten minutes); else a sample of calls and errors per verb."""
STRIDES = (32, 1 if EVERY_CODE else 16)
"""Calls from one that fails to the next; the second is that of deep tests."""
Content = list[str]


@dataclass(frozen=True)
class Verb:
    """Action on a table that ``prepared`` has created; ``identity`` is new for each action."""

    run: Callable[[Catalog], object]
    shows: Callable[[Catalog], object] = lambda catalog: shown(catalog.load_table(NAME))
    keyed_only: bool = False


def identity() -> dict[str, object]:
    return {"commit_user": "caller", "commit_identifier": 1}


def shown(table: DynamicTable) -> Content:
    return sorted(" ".join(map(str, row.values())) for row in table.to_arrow().to_pylist())


def names_of(catalog: Catalog) -> list[str]:
    return catalog.list_tables()


def _table(catalog: Catalog) -> DynamicTable:
    return reports_outcome(catalog.load_table)(NAME)  # loading is not part of a verb and changes nothing


VERBS = {
    "append": Verb(lambda catalog: _table(catalog).append(rows("+I a 9 90", "+I c 1 1"))),
    "append with an identity": Verb(lambda catalog: _table(catalog).append(rows("+I a 9 90"), **identity())),  # type: ignore[arg-type]
    "overwrite": Verb(lambda catalog: _table(catalog).overwrite(rows("+I a 9 90"), change_tracking=False)),
    "overwrite, tracked": Verb(
        lambda catalog: _table(catalog).overwrite(rows("+I a 9 90"), change_tracking=True), keyed_only=True
    ),
    "delete": Verb(lambda catalog: _table(catalog).append(rows("-D b 2 20")), keyed_only=True),
    "drop a partition": Verb(lambda catalog: _table(catalog).maintenance.drop_partitions([{"dt": "b"}])),
    "compact": Verb(
        lambda catalog: _table(catalog).compact(), lambda catalog: (shown(_table(catalog)), _files(_table(catalog)))
    ),
    "expire": Verb(
        lambda catalog: _table(catalog).maintenance.expire_snapshots(retain_last=1),
        lambda catalog: (shown(_table(catalog)), len(_table(catalog).inspect.snapshots())),
    ),
    "roll back": Verb(lambda catalog: _table(catalog).rollback_to(snapshot_id=1, change_tracking=False)),
    "tag": Verb(
        lambda catalog: _table(catalog).tags.create("new"),
        lambda catalog: [each.name for each in _table(catalog).tags.list()],
    ),
    "delete a tag": Verb(
        lambda catalog: _table(catalog).tags.delete("old"),
        lambda catalog: [each.name for each in _table(catalog).tags.list()],
    ),
    "branch": Verb(
        lambda catalog: _table(catalog).branches.create("new"), lambda catalog: _table(catalog).branches.list()
    ),
    "delete a branch": Verb(
        lambda catalog: _table(catalog).branches.delete("dev"), lambda catalog: _table(catalog).branches.list()
    ),
    "fast-forward": Verb(lambda catalog: _table(catalog).branches.fast_forward("dev", change_tracking=False)),
    "alter": Verb(
        lambda catalog: _table(catalog).alter(AddColumn("note", "STRING")),
        lambda catalog: [field.name for field in _table(catalog).schema.fields],
    ),
    "rewrite": Verb(
        lambda catalog: _table(catalog).rewrite(options={"bucket": "3"}),
        lambda catalog: (shown(_table(catalog)), _table(catalog).options.bucket),
        keyed_only=True,
    ),
    "analyze": Verb(
        lambda catalog: _table(catalog).maintenance.analyze(),
        lambda catalog: _table(catalog).context.file_store.snapshots.latest().statistics is not None,  # type: ignore[union-attr]
    ),
    "remove orphans": Verb(lambda catalog: _table(catalog).maintenance.remove_orphan_files(older_than=timedelta(0))),
    "create": Verb(lambda catalog: catalog.create_table("shop.new", COLUMNS, options={"log.system": "none"}), names_of),
    "drop": Verb(lambda catalog: catalog.drop_table(NAME), names_of),
    "rename": Verb(lambda catalog: catalog.rename_table(NAME, "shop.renamed"), names_of),
    "create a database": Verb(
        lambda catalog: catalog.create_database("other"), lambda catalog: catalog.list_databases()
    ),
    "drop a database": Verb(
        lambda catalog: catalog.drop_database("shop", cascade=True), lambda catalog: catalog.list_databases()
    ),
}


def _files(table: DynamicTable) -> bool:
    return table.inspect.files().num_rows <= 2


def _catalog(warehouse: Path, names: str) -> Catalog:
    return WarehouseCatalog(str(warehouse), environment=fake_environment(LocalFileIO(), names=names))


def _prepared(warehouse: Path, *, keyed: bool) -> None:
    catalog = _catalog(warehouse, "before")
    options = {"log.system": "none", "bucket": "1", "num-sorted-run.compaction-trigger": "3", "lease.timeout": "5 s"}
    if not keyed:
        options |= {"write-mode": "append-only", "bucket": "-1", "compaction.min.file-num": "3"}
    key = ["dt", "id"] if keyed else []
    table = catalog.create_table(NAME, COLUMNS, primary_key=key, partition_by=["dt"], options=options)
    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.tags.create("old")
    table.append(rows("+I a 3 30"))
    table.branches.create("dev")
    table.branches.open("dev").append(rows("+I d 4 40"))
    (Path(table.location) / "dt=a" / "bucket-0" / "data-lost.parquet").write_bytes(b"an orphan")


def _kinds() -> Iterator[object]:
    for name, verb in VERBS.items():
        for keyed, stays in product((True,) if verb.keyed_only else (True, False), (True, False)):
            # Every verb meets both kinds of tables, and errors that stay and that do not.
            is_deep = keyed is not stays and not verb.keyed_only
            if not is_deep:
                yield pytest.param(name, keyed, stays, STRIDES[0])
            yield pytest.param(name, keyed, stays, STRIDES[1], marks=pytest.mark.deep)


@pytest.mark.parametrize(("name", "keyed", "stays", "stride"), list(_kinds()))
def test_whatever_call_fails_the_rows_are_there_once(
    name: str,
    keyed: bool,  # noqa: FBT001
    stays: bool,  # noqa: FBT001
    stride: int,
    tmp_path: Path,
) -> None:
    verb = VERBS[name]
    fresh = tmp_path / "fresh"
    _prepared(fresh, keyed=keyed)
    before = verb.shows(_catalog(fresh, "look"))
    for turn, code in enumerate(CODES):
        done = tmp_path / f"done-{code}"
        shutil.copytree(fresh, done)
        with FaultyDisk(str(done), code=code).mounted() as counted:
            verb.run(_catalog(done, "verb"))
        after = verb.shows(_catalog(done, "look"))
        assert counted.count > 0 or code != errno.EIO
        for at in range(1 + (stride // 4 * turn + crc32(name.encode())) % stride, counted.count + 1, stride):
            warehouse = tmp_path / f"{code}-{at}"
            shutil.copytree(fresh, warehouse)
            with FaultyDisk(str(warehouse), at=at, code=code, stays=stays).mounted() as disk:
                error = _raised(lambda: verb.run(_catalog(warehouse, "verb")))  # noqa: B023  called at once
            when = f"{name}, {errno.errorcode[code]} at {at} of {counted.count}: {disk.struck[:1]}: {error!r}"
            _check(verb, warehouse, error, before, after, when)
            if name not in ("drop", "drop a database", "rename"):
                _check_writable(warehouse, when)
            shutil.rmtree(warehouse)


def _raised(act: Callable[[], object]) -> BaseException | None:
    try:
        act()
    except Exception as error:  # noqa: BLE001  it is what is tested
        return error
    return None


def _check(verb: Verb, warehouse: Path, error: BaseException | None, before: object, after: object, when: str) -> None:
    if error is not None:
        assert isinstance(error, StorageError), when
        assert "committed" in vars(error), when
    found = verb.shows(_catalog(warehouse, "look"))
    if error is None or error.committed is True:
        assert found == after, when
        return
    if error.committed is False:
        assert found == before, when
    assert found in (before, after), when
    if found == before:
        with suppress(AlreadyExistsError, NotFoundError):
            verb.run(_catalog(warehouse, "again"))
        assert verb.shows(_catalog(warehouse, "look")) == after, when


def _check_writable(warehouse: Path, when: str) -> None:
    table = _table(_catalog(warehouse, "next"))
    was = shown(table)
    row = rows("+I z 7 70")
    if any(field.name == "note" for field in table.schema.fields):
        row = row.append_column("note", pa.array([None], pa.string()))
    table.append(row)
    assert len(shown(table)) == len(was) + 1, when


@pytest.mark.parametrize("name", ["append", "tier_log"])
def test_an_outage_at_any_write_of_a_table_whose_log_comes_first_loses_no_row(name: str) -> None:
    def prepared() -> DynamicTable:
        table = orders(
            MemoryCatalog(environment=fake_environment()), **{"log.consistency": "eventual", "lease.timeout": "5 s"}
        )
        table.append(rows("+I a 1 10"))
        if name == "tier_log":
            order = table.new_write().begin(commit_user="stream")
            task = table.new_write().open_task(order)
            task.write(rows("+I b 2 20"))
            table.new_write().commit(order, [task.prepare_commit()], 1, defers_tiering=True)
        return table

    def run(table: DynamicTable) -> None:
        if name == "append":
            table.append(rows("+I b 2 20"))
        else:
            table.maintenance.tier_log()

    table = prepared()
    counted = FaultyFileIO(table.environment.file_io)
    run(reopened_in(counted, table, names="verb"))
    for at in range(1, sum(operation in WRITES for operation, _ in counted.calls) + 1):
        table = prepared()
        files = FaultyFileIO(table.environment.file_io, Fault(FaultKind.FAIL, at=at, operation=WRITES))
        error = _raised(lambda: run(reopened_in(files, table, names="verb")))  # noqa: B023  called at once
        assert error is None or isinstance(error, StorageError)
        assert error is None or "committed" in vars(error), at
        again = reopened(table)
        if isinstance(error, StorageError) and error.committed is False:
            run(again)
        again.maintenance.tier_log()
        assert content(again) == {"a 1 10", "b 2 20"}, f"{at}: {error!r}"
