"""Creating, loading, listing and dropping tables, with failures at any step."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    AlreadyExistsError,
    CorruptFileError,
    InvalidInputError,
    MemoryCatalog,
    NotFoundError,
    SetOption,
    TableDescriptor,
    UnavailableError,
    load_table_at,
    open_catalog,
)
from storage_lib.catalog.table_name import TableName
from storage_lib.io.environment import Environment, SystemClock
from storage_lib.io.file_io import FileStatus
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.log_store.log_store import LogStore
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.table_schema import TableSchema
from tests.support.breaking_log import BreakingLog
from tests.support.every_file import data_files
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.orders_table import COLUMNS, NAME, content, orders, rows


def test_a_table_is_there_for_every_process_that_opens_the_same_warehouse(tmp_path: Path) -> None:
    table = orders(open_catalog(str(tmp_path)))
    table.append(rows("+I a 1 10"))

    other = open_catalog(str(tmp_path))

    assert other.list_tables() == [NAME]
    assert content(other.load_table(NAME)) == {"a 1 10"}
    assert content(load_table_at(table.address)) == {"a 1 10"}


def test_a_damaged_table_is_listed_and_hides_no_other(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    orders(catalog)
    schemas = tmp_path / "db.db" / "broken" / "schema"
    schemas.mkdir(parents=True)
    (schemas / "schema-0").write_text("{")

    assert catalog.list_tables() == ["db.broken", NAME]
    with pytest.raises(NotFoundError, match=re.escape("existing tables: db.broken")):
        catalog.load_table("db.nothing")
    with pytest.raises(CorruptFileError, match="broken"):
        catalog.load_table("db.broken")


def test_a_drop_that_another_has_finished_spares_the_table_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_catalog(str(tmp_path))
    root = orders(catalog).location
    listed = LocalFileIO.list_directory

    def list_directory(files: LocalFileIO, path: str) -> list[FileStatus]:
        found = listed(files, path)
        if path == root:
            monkeypatch.setattr(LocalFileIO, "list_directory", listed)
            orders(open_catalog(str(tmp_path))).append(rows("+I a 1 10"))
        return found

    monkeypatch.setattr(LocalFileIO, "list_directory", list_directory)

    catalog.drop_table(NAME)

    assert content(open_catalog(str(tmp_path)).load_table(NAME)) == {"a 1 10"}


def test_options_are_frozen_at_creation_and_secrets_are_stored_nowhere(tmp_path: Path) -> None:
    options = {"bucket": "3", "log.system": "none", "log.kafka.sasl.plain.password": "hush"}
    orders(open_catalog(str(tmp_path), options))

    later = open_catalog(str(tmp_path), {"bucket": "7"}).load_table(NAME)

    assert later.schema.bucket_count == 3
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hush" not in stored


def test_a_secret_among_a_tables_own_options_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="give it to the catalog"):
        orders(open_catalog(str(tmp_path)), **{"log.kafka.sasl.plain.password": "hush"})


def test_creating_a_table_twice_is_refused_unless_it_may_exist() -> None:
    catalog = MemoryCatalog()
    table = orders(catalog)
    table.append(rows("+I a 1 10"))

    with pytest.raises(AlreadyExistsError, match="if_not_exists"):
        orders(catalog)
    again = catalog.create_table(NAME, COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], if_not_exists=True)

    assert content(again) == {"a 1 10"}


def test_if_not_exists_leaves_another_table_and_names_the_differences(caplog: pytest.LogCaptureFixture) -> None:
    catalog = MemoryCatalog()
    table = orders(catalog, **{"sequence.field": "price", "log.system": "none"})
    table.append(rows("+I a 1 10"))
    table = table.alter(SetOption("write-only", "true"))

    there = catalog.create_table(NAME, pa.schema([("id", pa.int64())]), primary_key=["id"], if_not_exists=True)

    assert content(there) == {"a 1 10"}
    assert there.schema == table.schema
    (warning,) = caplog.messages
    assert f"table {NAME} exists and differs from its declaration: column dt: " in warning
    assert "primary key: dt, id in the table, declared as id" in warning
    assert "write-only" not in warning


@pytest.mark.parametrize("name", ["orders", "a.b.c", "shop.", "shop.or/ders", "../x.y", "shop.or ders"])
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"database\.table"):
        MemoryCatalog().create_table(name, COLUMNS, primary_key=["id"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"primary_key": [], "options": {"merge-engine": "deduplicate"}}, "rows are counted"),
        ({"primary_key": ["nope"]}, "'nope' is not a column"),
        ({"primary_key": ["id"], "partition_by": ["dt"]}, "not in the primary key"),
        ({"primary_key": ["dt"], "partition_by": ["dt"]}, "consists of partition columns only"),
        ({"primary_key": ["id"], "options": {"bucket": "0"}}, "bucket is '0'"),
        ({"primary_key": ["id"], "options": {"bukcet": "2"}}, "did you mean 'bucket'"),
        ({"primary_key": ["id"], "options": {"merge-engine": "aggregation"}}, r"log\.system=none"),
        (
            {"primary_key": ["id"], "options": {"log.changelog-mode": "all", "log.system": "none"}},
            r"changelog-mode=all .*log\.system=none",
        ),
        ({"primary_key": ["id"], "options": {"scan.on-untracked": "shout"}}, r"on-untracked is 'shout'"),
        ({"primary_key": ["id"], "options": {"log.retention": "7"}}, r"log\.retention is '7'.*'7 d'"),
        ({"primary_key": ["id"], "options": {"num-levels": "1"}}, "num-levels is '1'; it has to be at least 2"),
        ({"primary_key": ["id"], "options": {"manifest.target-file-size": "0 b"}}, "at least 1 byte"),
        ({"primary_key": ["id"], "options": {"file.compression.zstd-level": "99"}}, "it has to be 1 to 22"),
        ({"primary_key": ["id"], "options": {"partition.default-name": "a/b"}}, "name of one directory"),
        ({"options": {"changelog-producer": "lookup"}}, "changelog-producer=lookup is for tables with a primary key"),
        ({"primary_key": ["id"], "options": {"changelog-producer": "lokup"}}, "changelog-producer is 'lokup'"),
        (
            {"primary_key": ["id"], "options": {"changelog-producer": "input", "merge-engine": "first-row"}},
            "changelog-producer=input does not go with merge-engine=first-row",
        ),
        (
            {
                "primary_key": ["id"],
                "options": {"changelog-producer": "full-compaction", "deletion-vectors.enabled": "true"},
            },
            "full-compaction does not go with deletion-vectors",
        ),
        ({"primary_key": ["id"], "options": {"path": "/elsewhere"}}, "would do nothing here.*open a catalog"),
        ({"options": {"primary-key": "id"}}, r"option primary-key can't be used here.*primary_key=\["),
        (
            {"primary_key": ["id"], "options": {"partition": "dt"}},
            r"option partition can't be used here.*partition_by=\[",
        ),
        ({"primary_key": ["id"], "options": {"fields.price.aggregate-function": "sum"}}, "merge-engine=aggregation"),
    ],
)
def test_what_can_not_be_a_table_is_refused_and_leaves_nothing(arguments: dict[str, object], told: str) -> None:
    catalog = MemoryCatalog()

    with pytest.raises(InvalidInputError, match=told):
        catalog.create_table(NAME, COLUMNS, **arguments)  # type: ignore[arg-type]

    assert catalog.list_tables() == []


def test_rows_that_are_counted_have_no_column_named_as_their_count() -> None:
    columns = pa.schema([("_VALUE_COUNT", pa.int64())])
    catalog = MemoryCatalog()

    with pytest.raises(InvalidInputError, match="'_VALUE_COUNT' is empty or reserved"):
        catalog.create_table("shop.counts", columns)

    catalog.create_table("shop.counts", columns, options={"write-mode": "append-only", "log.system": "none"})


def test_loading_a_table_that_is_not_there_names_those_that_are() -> None:
    catalog = MemoryCatalog()
    orders(catalog)

    with pytest.raises(NotFoundError, match=r"table shop\.order does not exist.*shop\.orders"):
        catalog.load_table("shop.order")


def test_dropping_takes_the_files_and_the_log_with_it(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    orders(catalog).append(rows("+I a 1 10"))

    catalog.drop_table(NAME)

    assert catalog.list_tables() == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert content(orders(catalog)) == set()
    with pytest.raises(NotFoundError):
        catalog.drop_table("shop.nothing")
    catalog.drop_table("shop.nothing", if_exists=True)


def test_a_table_with_a_damaged_schema_is_dropped_by_an_earlier_one(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    orders(catalog).append(rows("+I a 1 10"))
    catalog.alter_table(NAME, [AddColumn("more", pa.string())])
    (newest,) = tmp_path.rglob("schema-1")
    newest.write_text("{")

    catalog.drop_table(NAME)

    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert content(orders(catalog)) == set()


def test_a_table_without_a_readable_schema_says_how_to_get_rid_of_it(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    table = orders(catalog)
    (only,) = tmp_path.rglob("schema-0")
    only.write_text("{")

    with pytest.raises(CorruptFileError, match=f"{NAME} can't be dropped.*Delete {re.escape(table.location)} by hand"):
        catalog.drop_table(NAME)
    assert catalog.list_tables() == [NAME]


def test_metadata_that_the_newest_snapshot_lacks_is_damage_and_not_an_expiry(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    table = orders(catalog)
    table.append(rows("+I a 1 10"))
    for manifest in tmp_path.rglob("manifest-*-0"):
        manifest.unlink()

    with pytest.raises(CorruptFileError, match=r"snapshot 1 is the newest.*manifest-.*the table is damaged"):
        content(catalog.load_table(NAME))


@pytest.mark.parametrize("made_anew", [True, False])
def test_who_has_a_dropped_table_open_does_nothing_to_the_one_that_has_its_name(made_anew: bool) -> None:  # noqa: FBT001
    catalog = MemoryCatalog({"log.system": "none"})
    table = orders(catalog)
    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 10"))
    catalog.drop_table(NAME)
    second = orders(catalog) if made_anew else None
    if second is not None:
        second.append(rows("+I b 1 10"))

    for act in (
        lambda: table.append(rows("+I a 3 30")),
        lambda: table.overwrite(rows("+I a 3 30"), change_tracking=False),
        lambda: table.maintenance.expire_snapshots(retain_last=1),
        lambda: table.maintenance.remove_orphan_files(older_than=timedelta(0)),
        lambda: table.alter(AddColumn("more", "INT")),
    ):
        with pytest.raises(NotFoundError, match=r"shop\.orders was dropped.*load it again from its catalog"):
            act()

    assert len(data_files(table)) == (0 if second is None else 1)
    if second is not None:
        assert content(second) == content(catalog.load_table(NAME)) == {"b 1 10"}
        assert second.refresh() is second


def test_a_table_is_not_made_over_what_a_late_writer_left() -> None:
    catalog = MemoryCatalog({"log.system": "none"})
    table = orders(catalog)
    table.append(rows("+I a 1 10"))
    snapshot = table.environment.file_io.read_bytes(f"{table.location}/snapshot/snapshot-1")
    catalog.drop_table(NAME)
    table.environment.file_io.create_if_absent(f"{table.location}/snapshot/snapshot-1", snapshot)

    with pytest.raises(AlreadyExistsError, match="snapshots of a table that is gone"):
        orders(catalog)


def test_a_table_made_anew_has_a_log_of_its_own() -> None:
    catalog = MemoryCatalog()
    orders(catalog).append(rows("+I a 1 10"))
    catalog.drop_table(NAME)

    table = orders(catalog)

    assert table.stream().poll() is None


@pytest.mark.parametrize("k", range(40))
def test_a_drop_that_dies_anywhere_is_finished_by_whoever_comes_next(k: int) -> None:
    whole = fake_environment()
    catalog = MemoryCatalog(environment=whole)
    orders(catalog).append(rows("+I a 1 10"))
    dying = Environment(
        file_io=FaultyFileIO(whole.file_io, Fault(FaultKind.CRASH_BEFORE, at=k + 1)),
        clock=whole.clock,
        new_name=whole.new_name,
    )
    broken = _same_log_names(MemoryCatalog(environment=dying), catalog)
    try:
        broken.drop_table(NAME)
    except SimulatedCrash:
        survivor = _same_log_names(MemoryCatalog(environment=whole), catalog)
        if survivor.table_exists(NAME):
            survivor.drop_table(NAME)
        table = orders(survivor)
        assert content(table) == set()
        assert table.stream().poll() is None


class _WithoutBroker(MemoryCatalog):
    """A catalog that cannot create logs."""

    def _log(self, name: TableName, schema: TableSchema, options: TableOptions, uuid: str) -> LogStore | None:
        log = super()._log(name, schema, options, uuid)
        assert log is not None
        return _Unreachable(log)


class _Unreachable(BreakingLog):
    def create(self) -> None:
        message = "no broker answers"
        raise UnavailableError(message)


def test_a_log_that_can_not_be_made_leaves_no_table_behind() -> None:
    catalog = _WithoutBroker()

    with pytest.raises(UnavailableError, match="no broker"):
        orders(catalog)

    assert catalog.list_tables() == []


def test_a_descriptor_says_everything_itself() -> None:
    descriptor = (
        TableDescriptor.for_managed()
        .column("id", pa.int64())
        .column("name", pa.string())
        .with_primary_key(["id"])
        .option("bucket", "2")
    )

    table = MemoryCatalog().create_table("shop.names", descriptor)

    assert table.schema.primary_keys == ("id",)
    with pytest.raises(InvalidInputError, match="TableDescriptor"):
        MemoryCatalog().create_table("shop.names", descriptor, primary_key=["id"])


def _same_log_names(catalog: MemoryCatalog, other: MemoryCatalog) -> MemoryCatalog:
    """Let two catalogs over the same files share the same logs in memory."""
    catalog.log_prefix = other.log_prefix
    return catalog


def test_a_memory_catalog_never_meets_the_logs_of_one_that_is_gone() -> None:
    prefixes = {MemoryCatalog(environment=fake_environment()).log_prefix for _ in range(50)}

    assert len(prefixes) == 50


def test_a_column_that_no_row_could_be_written_to_is_refused() -> None:
    columns = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))])

    with pytest.raises(InvalidInputError, match=r"column 'at' is TIMESTAMP\(9\).*TIMESTAMP\(6\)"):
        MemoryCatalog().create_table(NAME, columns, primary_key=["id"])


def test_a_table_is_dropped_although_somebody_else_has_made_a_log_under_the_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = orders(catalog)
    assert isinstance(table.log, MemoryLogStore)
    topic = table.log.description()["log.kafka.topic"]
    table.log.drop()
    strangers = MemoryLogStore(table.schema, topic, "a-stranger", SystemClock())
    strangers.create()

    catalog.drop_table(NAME)

    assert catalog.list_tables() == []
    assert "was kept" in caplog.text
    assert strangers.latest_offsets().next_offsets == {0: 0}
    strangers.drop()
    orders(catalog).append(rows("+I a 1 10"))


def test_a_slip_of_the_pen_in_the_servers_does_not_make_a_table_without_a_log(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path), {"log.kafka.bootstrap.serverz": "127.0.0.1:9092"})

    with pytest.raises(InvalidInputError, match=r"log\.kafka\.bootstrap\.serverz a misspelling of it"):
        orders(catalog)

    assert catalog.list_tables() == []
    orders(catalog, **{"log.system": "none"}).append(rows("+I a 1 10"))
