"""The lock of a catalog: mutual exclusion, crashed holders, and commits on stores without create-if-absent."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import Catalog, InvalidInputError, LeaseLostError, UnavailableError, open_catalog
from storage_lib.catalog.locks.catalog_lock import CatalogLock
from storage_lib.io.combined.locked_file_io import LockedFileIO
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.support.catalog_homes import APART, CatalogHome, catalog_home
from tests.support.deep_tests import thinned
from tests.support.lock_racing_process import LackingFileIO, lacking_catalog

REPOSITORY = Path(__file__).parents[3]
QUICK = {"lock.timeout": "1 s", "lock-check-max-sleep": "20 ms"}
COLUMNS = pa.schema([("id", pa.int64())])
APPEND_ONLY = {"write-mode": "append-only", "write-only": "true"}


@pytest.fixture(params=APART)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home(request.param, request, tmp_path)


@pytest.fixture
def sqlite_home(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home("sqlite", request, tmp_path)


def lock_of(catalog: Catalog) -> CatalogLock:
    assert catalog.lock_factory is not None
    return pickle.loads(pickle.dumps(catalog.lock_factory)).create()  # noqa: S301  our own


def process(home: CatalogHome, options: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.lock_racing_process", home.warehouse]
    return subprocess.Popen(
        [*command, json.dumps({**home.options, "log.system": "none", **options}), *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_of_many_holders_one_acts_at_a_time(home: CatalogHome) -> None:
    lock = lock_of(home.open())
    acting: list[int] = []
    most: list[int] = []

    def act() -> None:
        acting.append(1)
        most.append(len(acting))
        time.sleep(0.002)
        acting.pop()

    def run() -> None:
        for _ in range(3):
            lock.run_with_lock(home.database, "orders", act)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 12
    with lock as opened:
        assert opened.run_with_lock(home.database, "orders", lambda: "done") == "done"


def test_locks_of_two_tables_do_not_wait_for_each_other(home: CatalogHome) -> None:
    lock = lock_of(home.open({"lock-acquire-timeout": "200 ms"}))

    with lock.hold(home.database, "orders"):
        assert lock.run_with_lock(home.database, "items", lambda: 1) == 1
        with pytest.raises(
            UnavailableError, match=f"lock of table {home.database}.orders could not be acquired in 0 s"
        ):
            lock.run_with_lock(home.database, "orders", lambda: 1)


def test_an_error_gives_the_lock_back(home: CatalogHome) -> None:
    lock = lock_of(home.open({"lock-acquire-timeout": "200 ms"}))

    with pytest.raises(ZeroDivisionError):
        lock.run_with_lock(home.database, "orders", lambda: 1 // 0)
    assert lock.run_with_lock(home.database, "orders", lambda: 1) == 1


def test_a_holder_that_dies_blocks_others_for_its_time_out_only(home: CatalogHome) -> None:
    with process(home, QUICK, f"{home.database}.orders", "hold", "0") as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == "held\n"
        dying.kill()
    lock = lock_of(home.open(QUICK))

    assert lock.run_with_lock(home.database, "orders", lambda: "mine") == "mine"


def test_a_holder_that_lives_is_not_taken_over_however_long_it_acts(home: CatalogHome) -> None:
    lock = lock_of(home.open({**QUICK, "lock.timeout": "2 s", "lock-acquire-timeout": "3500 ms"}))
    with lock.hold(home.database, "orders") as held:
        with pytest.raises(UnavailableError, match="still renews it"):
            lock.run_with_lock(home.database, "orders", lambda: 1)
        held.check()


def test_a_holder_that_was_taken_over_is_told_and_does_not_give_back_the_others_lock(home: CatalogHome) -> None:
    lock = lock_of(home.open({"lock-acquire-timeout": "200 ms"}))
    with lock.hold(home.database, "orders") as late:
        seen = lock.sign_of_life(home.database, "orders")
        assert seen is not None
        ticket = lock.take_over(home.database, "orders", seen[0])
        assert ticket is not None

        with pytest.raises(LeaseLostError, match="taken over"):
            late.check()
    with pytest.raises(UnavailableError):
        lock.run_with_lock(home.database, "orders", lambda: 1)
    lock.give_back(ticket)
    lock.run_with_lock(home.database, "orders", lambda: 1)


def test_a_late_holder_overwrites_nothing(home: CatalogHome, tmp_path: Path) -> None:
    lock = lock_of(home.open())
    path = str(tmp_path / "snapshot-1")

    class Slow(LackingFileIO):
        """Lets another process take over the lock and write the file while its holder checks for the file."""

        looked = 0

        def exists(self, path: str) -> bool:
            there = super().exists(path)
            self.looked += 1
            if self.looked == 2:
                seen = lock.sign_of_life(home.database, "orders")
                assert seen is not None
                ticket = lock.take_over(home.database, "orders", seen[0])
                assert ticket is not None
                self.replace(path, b"theirs")
                lock.give_back(ticket)
            return there

    files = LockedFileIO(Slow(), lambda _: lock.hold(home.database, "orders"))

    with pytest.raises(LeaseLostError):
        files.create_if_absent(path, b"mine")
    assert LocalFileIO().read_bytes(path) == b"theirs"
    assert not LockedFileIO(LackingFileIO(), lambda _: lock.hold(home.database, "orders")).create_if_absent(path, b"x")


def test_a_store_without_create_if_absent_needs_a_catalog_with_a_lock(sqlite_home: CatalogHome) -> None:
    options = {"s3.conditional-put": "disabled", "s3.region": "us-east-1"}

    with pytest.raises(InvalidInputError, match=r"s3://lake/tables has no create-if-absent.*metastore=sql or hive"):
        open_catalog("s3://lake/tables", options)
    with pytest.raises(InvalidInputError, match=r"without lock\.enabled=false"):
        open_catalog("s3://lake/tables", {**options, **sqlite_home.options, "lock.enabled": "false"})
    with pytest.raises(InvalidInputError, match=r"lock\.enabled=true needs a catalog that has a lock"):
        open_catalog(sqlite_home.warehouse, {"lock.enabled": "true"})
    assert open_catalog("s3://lake/tables", {**options, **sqlite_home.options}).lock_factory is not None


def test_a_table_lives_on_a_store_without_create_if_absent(sqlite_home: CatalogHome) -> None:
    options = {"log.system": "none", **sqlite_home.options}
    catalog = lacking_catalog(sqlite_home.warehouse, options)
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64()), ("v", pa.int64())]), primary_key=["id"])

    table.append(pa.table({"id": [1, 2], "v": [1, 2]}))
    pickle.loads(pickle.dumps(table.environment))  # noqa: S301  our own
    table.append(pa.table({"id": [2], "v": [3]}))
    table.compact()

    assert catalog.load_table("shop.orders").to_arrow().sort_by("id").to_pydict() == {"id": [1, 2], "v": [1, 3]}
    catalog.drop_table("shop.orders")
    assert catalog.list_tables() == []


@pytest.fixture(params=thinned([(4, 10), (8, 50)]), ids=["a few", "many"])
def racers(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[CatalogHome, int, list[subprocess.Popen[str]]]]:
    """Start four processes that commit ten times each; in deep tests eight, fifty times."""
    home = catalog_home("postgres", request, tmp_path)
    count, commits = request.param
    options = {"log.system": "none", **home.options}
    lacking_catalog(home.warehouse, options).create_table("shop.events", COLUMNS, options=APPEND_ONLY)
    started = [process(home, {}, "shop.events", str(number), str(commits)) for number in range(count)]
    yield home, commits, started
    for each in started:
        each.kill()
        each.communicate()


@pytest.mark.postgres
@pytest.mark.integration
def test_processes_that_race_on_a_store_without_create_if_absent_lose_and_repeat_no_commit(
    racers: tuple[CatalogHome, int, list[subprocess.Popen[str]]],
) -> None:
    home, commits, started = racers
    for each in started:
        _, said = each.communicate(timeout=500)
        assert each.returncode == 0, said

    table = open_catalog(home.warehouse, {"log.system": "none", **home.options}).load_table("shop.events")

    expected = [number * 1000 + each for number in range(len(started)) for each in range(commits)]
    assert sorted(table.to_arrow()["id"].to_pylist()) == expected
    assert table.context.file_store.snapshots.latest_id() == len(expected)
