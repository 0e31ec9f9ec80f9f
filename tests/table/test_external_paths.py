"""Tables with external data directories: every verb, and what must never be deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, RemoveOption, SetOption, WarehouseCatalog
from storage_lib.catalog.declaration.table_drift import table_drift
from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.errors import CorruptFileError, NotFoundError, UnavailableError
from storage_lib.file_store.cleanup.external_claims import CLAIM_NAME
from storage_lib.io.file_io_factory import is_same_place
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.options.external_paths import PATHS_OPTION, STRATEGY_OPTION
from storage_lib.schema.table_schema import TableSchema
from tests.support.every_file import every_file
from tests.support.fake_environment import CountedNames, FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.orders_table import COLUMNS, NAME, content, orders, rows

ROOT = "/outside"
PLACE = f"{ROOT}/shop.db/orders"
NO_LOG = {"log.system": "none"}
KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "lookup": {"changelog-producer": "lookup"},
    "input": {"changelog-producer": "input"},
    "full compaction": {"changelog-producer": "full-compaction"},
    "dynamic buckets": {"bucket": "-1"},
    "avro": {"file.format": "avro"},
}


@pytest.fixture
def catalog() -> Iterator[MemoryCatalog]:
    """Two views of the same files; at the end, no path outside the warehouse has been used in the warehouse's store."""
    clock = FakeClock()
    home, router = (FaultyFileIO(each) for each in [MemoryFileIO(now_millis=clock.now_millis)] * 2)
    yield MemoryCatalog(environment=replace(fake_environment(home, clock=clock), elsewhere=router))
    assert not [call for call in home.calls if ROOT in call[1] or "/elsewhere" in call[1]]


def outside(catalog: MemoryCatalog, **options: str) -> DynamicTable:
    return orders(catalog, **{**NO_LOG, "file.root-path": ROOT, **options})


def data_outside(table: DynamicTable) -> set[str]:
    return {path for path in every_file(table.environment.stores, ROOT) if not path.endswith(CLAIM_NAME)}


def data_inside(table: DynamicTable) -> set[str]:
    return {path for path in every_file(table.environment.stores, table.location) if "/bucket-" in path}


def pass_a_week(table: DynamicTable) -> None:
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(7 * 24 * 3600)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject", "weight-robin"])
def test_every_verb_of_a_table_keeps_its_data_outside(catalog: MemoryCatalog, kind: str, strategy: str) -> None:
    options = {PATHS_OPTION: "file:/outside/one,file:/outside/two", STRATEGY_OPTION: strategy}
    if strategy == "weight-robin":
        options[f"{PATHS_OPTION}.weights"] = "1,2"
    table = orders(catalog, **{**NO_LOG, **options, **KINDS[kind]})
    for price in range(1, 5):
        table.append(rows(f"+U a 1 {price}", f"+I b {price} 5", "+I c 1 1"))
    table.tags.create("four")
    table.branches.create("dev")
    table.branches.open("dev").append(rows("+U a 1 77"))
    table.append(rows("-D c 1 1"))
    table.compact(full=True)
    table.overwrite(rows("+I b 9 9"), partition={"dt": "b"})
    assert content(table) == {"a 1 4", "b 9 9"}
    assert content(table.branches.open("dev")) == {"a 1 77", "b 1 5", "b 2 5", "b 3 5", "b 4 5", "c 1 1"}
    assert data_inside(table) == set()
    paths = table.inspect.system_table("files")["file_path"].to_pylist()
    assert all(path.startswith(ROOT) for path in paths)

    table.maintenance.drop_partitions([{"dt": "a"}])
    table.maintenance.expire_snapshots(retain_last=1)
    table.branches.delete("dev")
    assert content(table) == {"b 9 9"}
    table.rollback_to(tag="four")
    assert content(table) == {"a 1 4", "b 1 5", "b 2 5", "b 3 5", "b 4 5", "c 1 1"}
    table.tags.delete("four")
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    pass_a_week(table)
    assert table.maintenance.remove_orphan_files().paths == ()
    assert set(table.inspect.system_table("files")["file_path"].to_pylist()) <= data_outside(table)
    assert content(catalog.load_table(NAME)) == {"a 1 4", "b 1 5", "b 2 5", "b 3 5", "b 4 5", "c 1 1"}

    catalog.drop_table(NAME)
    assert every_file(table.environment.stores, ROOT) == set()
    assert every_file(table.environment.stores, table.location) == set()


def test_a_table_with_all_its_data_inside_does_not_use_the_router_of_stores() -> None:
    router = FaultyFileIO(MemoryFileIO())
    catalog = MemoryCatalog(environment=replace(fake_environment(), elsewhere=router))
    table = orders(catalog)
    for price in range(1, 5):
        table.append(rows(f"+U a 1 {price}", f"+I b {price} 5"))
    table.compact(full=True)
    table.overwrite(rows("+I b 9 9"), partition={"dt": "b"})

    assert content(catalog.load_table(NAME)) == {"a 1 4", "b 9 9"}
    assert router.calls == []


def test_an_open_table_reads_files_that_were_moved_outside_since(catalog: MemoryCatalog) -> None:
    table = orders(catalog, **NO_LOG)
    table.append(rows("+I a 1 1"))

    altered(table, ("file.root-path", ROOT)).append(rows("+I a 2 1"))

    assert content(table) == {"a 1 1", "a 2 1"}


def test_what_no_snapshot_needs_is_deleted_outside_as_well(catalog: MemoryCatalog) -> None:
    table = outside(catalog)
    for price in range(1, 4):
        table.append(rows(f"+U a 1 {price}"))
    table.compact(full=True)
    assert len(data_outside(table)) == 4

    table.maintenance.expire_snapshots(retain_last=1)

    assert data_outside(table) == set(table.inspect.system_table("files")["file_path"].to_pylist())


def test_orphans_outside_are_found_and_nothing_else(catalog: MemoryCatalog) -> None:
    table = outside(catalog)
    table.append(rows("+I a 1 1"))
    live = data_outside(table)
    task = table.new_write().open_task(table.new_write().begin(commit_user="dead"))
    task.write(rows("+I z 9 9"))
    task.prepare_commit()
    orphans = data_outside(table) - live
    files = table.environment.stores
    files.write_bytes(f"{PLACE}/notes.txt", b"mine")
    files.write_bytes(f"{PLACE}/dt=a/notes.txt", b"mine")
    files.write_bytes(f"{PLACE}/dt=a/bucket-0/0101/notes.txt", b"mine")
    entropy = f"{PLACE}/dt=a/bucket-0/0101/0101/0101/01010101/data-lost-0.parquet"
    files.write_bytes(entropy, b"x")
    pass_a_week(table)

    assert set(table.maintenance.remove_orphan_files(dry_run=True).paths) == {*orphans, entropy}
    assert set(table.maintenance.remove_orphan_files().paths) == {*orphans, entropy}

    assert {path for path in data_outside(table) if not path.endswith("notes.txt")} == live
    assert len([path for path in data_outside(table) if path.endswith("notes.txt")]) == 3
    assert content(table) == {"a 1 1"}


def test_an_aborted_write_leaves_nothing_outside(catalog: MemoryCatalog) -> None:
    table = outside(catalog)
    order = table.new_write().begin(commit_user="undecided")
    task = table.new_write().open_task(order)
    task.write(rows("+I z 9 9"))
    message = task.prepare_commit()
    assert data_outside(table)

    table.new_write().abort(order, [message])

    assert data_outside(table) == set()


def test_two_tables_never_share_a_directory(catalog: MemoryCatalog) -> None:
    table = outside(catalog)
    for place in (PLACE, f"{PLACE}/dt=a"):
        for strategy in ("round-robin", "none"):
            options = {**NO_LOG, PATHS_OPTION: f"file:{place}", STRATEGY_OPTION: strategy}
            with pytest.raises(InvalidInputError, match="belongs to the table at"):
                catalog.create_table("shop.other", COLUMNS, options=options)
    other = catalog.create_table("shop.other", COLUMNS, options=NO_LOG)
    with pytest.raises(InvalidInputError, match=r"belongs to the table at .*orders; two tables can't share"):
        other.alter(SetOption(PATHS_OPTION, f"file:{PLACE}"), SetOption(STRATEGY_OPTION, "round-robin"))

    assert catalog.list_tables() == ["shop.orders", "shop.other"]
    catalog.drop_table("shop.other")
    assert table.environment.stores.exists(f"{PLACE}/{CLAIM_NAME}")


def test_a_directory_in_a_tables_own_is_refused(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), NO_LOG)
    table = orders(catalog)
    for name, said in (("shop.other", "belongs to the table at"), ("shop.own", "in the table's own directory")):
        for inside in ("", "/deeper"):
            place = f"{table.location.removesuffix('orders')}{'own' if name == 'shop.own' else 'orders'}{inside}"
            options = {PATHS_OPTION: f"file:{place}", STRATEGY_OPTION: "round-robin"}
            with pytest.raises(InvalidInputError, match=said):
                catalog.create_table(name, COLUMNS, options=options)

    assert catalog.list_tables() == ["shop.orders"]


def test_a_directory_with_files_in_it_is_refused(catalog: MemoryCatalog) -> None:
    catalog._environment.stores.write_bytes(f"{PLACE}/data.parquet", b"x")

    with pytest.raises(InvalidInputError, match=r"not empty \(it has 'data.parquet'\)"):
        outside(catalog)

    assert catalog.list_tables() == []
    assert every_file(catalog._environment.stores, ROOT) == {f"{PLACE}/data.parquet"}


def test_a_creation_that_was_interrupted_can_be_repeated(catalog: MemoryCatalog) -> None:
    catalog._environment.stores.write_bytes(f"{PLACE}/{CLAIM_NAME}", b"/memory/shop.db/orders")

    outside(catalog).append(rows("+I a 1 1"))

    assert content(catalog.load_table(NAME)) == {"a 1 1"}


def test_a_dropped_tables_name_and_directory_are_free_again(catalog: MemoryCatalog) -> None:
    outside(catalog).append(rows("+I a 1 1"))
    catalog.drop_table(NAME)

    table = outside(catalog)

    assert content(table) == set()


def altered(table: DynamicTable, *options: tuple[str, str]) -> DynamicTable:
    return table.alter(*(SetOption(key, value) for key, value in options))


def test_files_stay_where_they_are_when_the_directory_is_changed(catalog: MemoryCatalog) -> None:
    table = orders(catalog, **NO_LOG)
    table.append(rows("+I a 1 1"))
    table = altered(table, ("file.root-path", ROOT))
    assert table.schema.options[PATHS_OPTION] == f"file:{PLACE}"
    table.append(rows("+I a 2 1"))
    table = altered(table, (PATHS_OPTION, "file:/elsewhere"))
    table.append(rows("+I a 3 1"))
    table = table.alter(RemoveOption("table-storage.file.root-path"))
    table.append(rows("+I a 4 1"))
    table = table.alter(RemoveOption(PATHS_OPTION))

    assert content(table) == {f"a {key} 1" for key in range(1, 5)}
    assert (len(data_inside(table)), len(data_outside(table))) == (2, 1)
    files = table.environment.stores
    lost = (f"{PLACE}/dt=a/bucket-0/data-lost.parquet", "/elsewhere/dt=a/bucket-0/data-lost.parquet")
    for path in lost:
        files.write_bytes(path, b"x")
    pass_a_week(table)
    assert table.maintenance.remove_orphan_files().paths == tuple(sorted(lost))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    assert data_outside(table) == set()
    assert content(table) == {f"a {key} 1" for key in range(1, 5)}
    catalog.drop_table(NAME)
    assert every_file(files, ROOT) | every_file(files, "/elsewhere") == set()


def test_a_branch_does_not_say_where_data_goes(catalog: MemoryCatalog) -> None:
    table = orders(catalog, **NO_LOG)
    table.append(rows("+I a 1 1"))
    table.branches.create("dev")

    with pytest.raises(InvalidInputError, match="all branches of a table share its data directories"):
        altered(table.branches.open("dev"), (PATHS_OPTION, "file:/elsewhere"), (STRATEGY_OPTION, "round-robin"))


def test_directories_without_a_strategy_are_refused(catalog: MemoryCatalog) -> None:
    with pytest.raises(InvalidInputError, match=r"does nothing without data-file.external-paths.strategy"):
        orders(catalog, **{**NO_LOG, PATHS_OPTION: "file:/elsewhere"})
    with pytest.raises(InvalidInputError, match="has no scheme"):
        orders(catalog, **{**NO_LOG, PATHS_OPTION: "/elsewhere", STRATEGY_OPTION: "round-robin"})


def test_a_catalogs_root_path_is_the_default_of_new_tables() -> None:
    environment = fake_environment()
    catalog = MemoryCatalog({"table-storage.file.root-path": ROOT}, environment=environment)
    table = orders(catalog, **NO_LOG)
    own = {**NO_LOG, PATHS_OPTION: "file:/elsewhere", STRATEGY_OPTION: "none"}
    other = catalog.create_table("shop.other", COLUMNS, options=own)

    assert table.schema.options[PATHS_OPTION] == f"file:{PLACE}"
    assert "file.root-path" not in table.schema.options
    assert (other.schema.options[PATHS_OPTION], other.schema.options[STRATEGY_OPTION]) == ("file:/elsewhere", "none")
    plain = MemoryCatalog(environment=environment).create_table("shop.plain", COLUMNS, options=NO_LOG)
    plain = catalog.load_table(plain.name)
    plain.append(pa.table({"dt": ["a"], "id": [1], "price": [1]}))
    assert data_inside(plain), "what a connection says is for new tables"


def test_a_declaration_by_root_path_is_no_drift(catalog: MemoryCatalog) -> None:
    table = outside(catalog)
    declared = TableDescriptor(
        schema=COLUMNS, primary_key=("dt", "id"), partition_by=("dt",), options={**NO_LOG, "file.root-path": ROOT}
    )

    assert table_drift(table, declared) == ()
    assert table_drift(table, replace(declared, options={**NO_LOG, "file.root-path": "/other"})) != ()


def test_a_renamed_table_keeps_its_directory_and_its_claim(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path / "warehouse"), NO_LOG)
    place = tmp_path / "outside"
    table = orders(catalog, **{"file.root-path": str(place)})
    table.append(rows("+I a 1 1"))

    table = catalog.rename_table(NAME, "shop.renamed")

    assert content(table) == {"a 1 1"}
    with pytest.raises(InvalidInputError, match=r"belongs to the table at .*renamed"):
        orders(catalog, **{"file.root-path": str(place)})
    catalog.drop_table("shop.renamed")
    assert [path for path in place.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("act", ["create", "drop"])
def test_a_creation_or_a_drop_that_dies_anywhere_is_finished_by_the_next(act: str) -> None:
    at = 0
    while True:
        at += 1
        environment = fake_environment()
        files = environment.file_io
        if act == "drop":
            outside(MemoryCatalog(environment=environment)).append(rows("+I a 1 1"))
        dying = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=at))
        mortal = MemoryCatalog(environment=replace(environment, file_io=dying, new_name=CountedNames("mortal")))
        try:
            mortal.drop_table(NAME) if act == "drop" else outside(mortal)
        except SimulatedCrash:
            when = f"{act}, {at}: {dying.calls[-1]}"
        else:
            break
        following = MemoryCatalog(environment=replace(environment, new_name=CountedNames("following")))
        if act == "drop":
            following.drop_table(NAME, if_exists=True)
            assert every_file(files, ROOT) == set(), when
        table = following.load_table(NAME) if following.table_exists(NAME) else outside(following)
        table.append(rows("+I a 2 2"))
        assert content(table) == {"a 2 2"}, when
        following.drop_table(NAME)
        assert every_file(files, ROOT) == set(), when
    assert at > 10


def test_a_creation_that_fails_gives_its_directory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = MemoryCatalog(environment=fake_environment())

    def refused(_: MemoryLogStore) -> None:
        raise UnavailableError("no brokers")

    monkeypatch.setattr(MemoryLogStore, "create", refused)
    with pytest.raises(UnavailableError, match="no brokers"):
        orders(catalog, **{"file.root-path": ROOT})

    assert every_file(catalog._environment.stores, ROOT) == set()
    outside(catalog)


def test_a_warehouse_of_another_spelling_has_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "warehouse")
    spellings = [str(tmp_path / "link"), str(tmp_path / "warehouse"), f"file://{tmp_path}/warehouse/"]
    for first, second in permutations(spellings, 2):
        orders(WarehouseCatalog(first, NO_LOG), **{"file.root-path": str(tmp_path / "outside")})
        catalog = WarehouseCatalog(second, NO_LOG)
        table = catalog.load_table(NAME)
        table.append(rows("+I a 1 1"))
        lost = tmp_path / "outside" / "shop.db" / "orders" / "dt=a" / "bucket-0" / "data-lost.parquet"
        lost.write_bytes(b"x")
        assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == (str(lost),)
        catalog.drop_table(NAME)
        assert not lost.parent.exists()


@pytest.mark.parametrize("other", ["s3a://lake/db.db/t", "s3://lake/db.db/t"])
def test_another_name_of_a_scheme_is_the_same_place(other: str) -> None:
    assert is_same_place("s3://lake/db.db/t", other)
    assert not is_same_place("s3://lake/db.db/u", other)


def test_a_table_that_another_engine_renamed_says_how_to_claim_its_directory_again(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path / "warehouse"), NO_LOG)
    table = orders(catalog, **{"file.root-path": str(tmp_path / "outside")})
    table.append(rows("+I a 1 1"))
    Path(table.location).rename(Path(table.location).with_name("renamed"))
    renamed = catalog.load_table("shop.renamed")

    with pytest.raises(InvalidInputError, match=r"this table's earlier place, .* delete (\S+) and set") as refused:
        renamed.append(rows("+I a 2 2"))
    (claim,) = (tmp_path / "outside").rglob(CLAIM_NAME)
    assert str(claim) in str(refused.value)
    claim.unlink()
    renamed = altered(renamed, (PATHS_OPTION, renamed.schema.options[PATHS_OPTION]))
    renamed.append(rows("+I a 2 2"))

    assert content(renamed) == {"a 1 1", "a 2 2"}
    catalog.drop_table("shop.renamed")
    assert not claim.parent.exists()


# Files that metadata names, but that must not be deleted.


def forged(table: DynamicTable, change: Callable[[dict[str, str]], dict[str, str]]) -> DynamicTable:
    """Return the table with options forged into its schemas."""
    files = table.environment.stores
    for schema_id in range(table.schema.id + 1):
        path = f"{table.location}/schema/schema-{schema_id}"
        schema = TableSchema.from_json(files.read_bytes(path))
        files.replace(path, replace(schema, options=change(dict(schema.options))).to_json())
    newest = TableSchema.from_json(files.read_bytes(f"{table.location}/schema/schema-{table.schema.id}"))
    return DynamicTable(
        name=table.name,
        uuid=table.uuid,
        location=table.location,
        address=None,
        environment=table.environment,
        schema=newest,
        options=table.options,
        log=None,
    )


def test_a_table_of_another_engine_is_cleaned_by_name_only(
    catalog: MemoryCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    """It has not claimed the directory, so another table may have files in it."""
    table = outside(catalog)
    files = table.environment.stores
    files.delete(f"{PLACE}/{CLAIM_NAME}")
    for price in (1, 2):
        table.append(rows(f"+U a 1 {price}"))
    others = f"{PLACE}/dt=a/bucket-0/data-of-another-table-0.parquet"
    files.write_bytes(others, b"x")
    pass_a_week(table)

    assert table.maintenance.remove_orphan_files().paths == ()
    assert "has not claimed it" in caplog.text
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    assert len(data_outside(table)) == 2
    catalog.drop_table(NAME)

    assert every_file(files, ROOT) == {others}


def test_setting_the_directories_again_claims_them(catalog: MemoryCatalog) -> None:
    table = outside(catalog)
    table.append(rows("+I a 1 1"))
    files = table.environment.stores
    files.delete(f"{PLACE}/{CLAIM_NAME}")
    lost = f"{PLACE}/dt=a/bucket-0/data-lost.parquet"
    files.write_bytes(lost, b"x")
    pass_a_week(table)
    assert table.maintenance.remove_orphan_files().paths == ()

    table = altered(table, (PATHS_OPTION, f"file:{PLACE}"))

    assert table.schema.id == 0
    assert table.maintenance.remove_orphan_files().paths == (lost,)


@pytest.mark.parametrize("claimed", [True, False])
def test_a_table_that_names_another_tables_directory_deletes_nothing_there(
    catalog: MemoryCatalog,
    caplog: pytest.LogCaptureFixture,
    claimed: bool,  # noqa: FBT001
) -> None:
    victim = outside(catalog)
    victim.append(rows("+I a 1 1"))
    files = victim.environment.stores
    hostile = catalog.create_table(
        "shop.hostile", COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options={**NO_LOG, "bucket": "1"}
    )
    if not claimed:
        files.write_bytes(f"{victim.location}/dt=a/bucket-0/data-x.parquet", b"x")
    hostile.append(rows("+I a 1 1"))
    named = {PATHS_OPTION: f"file:{PLACE if claimed else victim.location}", STRATEGY_OPTION: "round-robin"}
    hostile = forged(hostile, lambda options: {**options, **named})
    before = every_file(files, ROOT) | every_file(files, victim.location)
    with pytest.raises(
        InvalidInputError, match=r"belongs to the table at .*orders, whose clean-up or drop would delete"
    ):
        hostile.append(rows("+U a 1 2"))
    for path in before:
        hostile.context.file_store.deletion.delete(path)
    hostile = forged(hostile, lambda options: {**options, STRATEGY_OPTION: "none"})
    hostile.append(rows("+U a 1 3"))
    hostile.compact(full=True)
    hostile.maintenance.expire_snapshots(retain_last=1)
    pass_a_week(hostile)
    hostile.maintenance.remove_orphan_files(older_than=timedelta(0))
    catalog.drop_table("shop.hostile")

    assert "belongs to another table" in caplog.text
    assert every_file(files, ROOT) | every_file(files, victim.location) >= before
    assert content(victim) == {"a 1 1"}


@pytest.mark.parametrize(
    "named",
    [
        "file:/precious/file.parquet",
        "file:/outside/shop.db/orders/file.parquet",
        "file:/outside/shop.db/orders/dt=a/notes/file.parquet",
        "file:/outside/shop.db/orders/dt=a/bucket-0/deeper/file.parquet",
        "file:/outside/shop.db/orders/dt=a/bucket-0/../../../../../precious/file.parquet",
        "file:/outside/shop.db/orders/../../../precious/bucket-0/file.parquet",
        "file:/outside/shop.db/orders-2/dt=a/bucket-0/file.parquet",
    ],
)
def test_a_path_that_is_no_data_files_place_is_never_deleted(
    catalog: MemoryCatalog, caplog: pytest.LogCaptureFixture, named: str
) -> None:
    table = outside(catalog)
    table.append(rows("+I a 1 1"))

    table.context.file_store.deletion.delete(named.removeprefix("file:"))

    assert "is in no data directory of the table" in caplog.text


def test_a_link_in_an_external_directory_is_not_followed(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path / "warehouse"), NO_LOG)
    table = orders(catalog, **{"file.root-path": str(tmp_path / "outside")})
    table.append(rows("+I a 1 1"))
    place = tmp_path / "outside" / "shop.db" / "orders"
    precious = tmp_path / "precious" / "bucket-0"
    precious.mkdir(parents=True)
    (precious / "data-0.parquet").write_bytes(b"x")
    (place / "dt=b").symlink_to(precious.parent)
    (place / "dt=a" / "bucket-7").symlink_to(precious)

    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == ()
    table.context.file_store.deletion.delete(str(place / "dt=b" / "bucket-0" / "data-0.parquet"))
    catalog.drop_table(NAME)

    assert (precious / "data-0.parquet").exists()
    assert not place.exists()


@pytest.mark.parametrize(
    "named", ["", "outside/file.parquet", "/precious/file.parquet", "file:relative", "file:/out\0side", "nowhere"]
)
def test_an_entry_whose_path_is_no_url_is_damaged(catalog: MemoryCatalog, named: str) -> None:
    table = outside(catalog)
    table.append(rows("+I a 1 1"))
    (split,) = table.new_read().plan().splits()
    forged_split = replace(split, files=tuple(replace(file, external_path=named) for file in split.files))

    with pytest.raises((CorruptFileError, NotFoundError)):
        list(table.context.file_store.read.read(forged_split))
