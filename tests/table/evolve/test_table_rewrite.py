"""ADD PRIMARY KEY and rescaling buckets: all rows are rewritten in one snapshot, and old writers are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    StreamPosition,
)
from storage_lib.errors import RetryableError, StorageError
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.placing.layout import LayoutChange
from tests.support.crash_points import CrashPoints, files_in, logs_in_memory
from tests.support.fake_environment import CountedNames, FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.orders_table import COLUMNS, content, orders, rows, streamed

FILLED = ("+I a 1 10", "+I a 2 20", "+I b 3 30", "+U a 1 11", "-D a 2 20")
LEFT = {"a 1 11", "b 3 30"}
NO_KEY: dict[str, Any] = {"log.system": "none"}


def filled(catalog: MemoryCatalog | None = None, options: Mapping[str, str] | None = None) -> DynamicTable:
    table = orders(catalog, **{"bucket": "2", **(options or {})})
    for change in FILLED:
        table.append(rows(change))
    return table


def keyless(catalog: MemoryCatalog, **options: str) -> DynamicTable:
    """Create a table without a key, which counts its rows."""
    return catalog.create_table("shop.visits", COLUMNS, partition_by=["dt"], options=options)


def inserted(*texts: str) -> pa.Table:
    return rows(*(f"+I {text}" for text in texts)).drop(["_row_kind"])


def catalog_over(environment: Environment) -> MemoryCatalog:
    return MemoryCatalog(environment=environment)


def test_another_number_of_buckets_holds_the_same_rows_and_takes_more() -> None:
    table = filled()

    rewritten = table.rewrite(options={"bucket": "5"})

    assert content(rewritten) == LEFT
    newest = rewritten.context.file_store.snapshots.latest()
    assert {entry.total_buckets for entry in rewritten.context.file_store.scan.entries(newest)} == {5}
    rewritten.append(rows("+U a 1 12", "-D b 3 30", "+I c 9 90"))
    rewritten.compact()
    assert content(rewritten) == {"a 1 12", "c 9 90"}


def test_the_log_begins_anew_and_a_stream_that_starts_then_sees_every_row_once() -> None:
    catalog = catalog_over(fake_environment())
    table = filled(catalog)
    assert table.log is not None
    assert table.log.description()["log.kafka.topic"].endswith("/shop.orders")

    rewritten = table.rewrite(options={"bucket": "3"})
    assert rewritten.log is not None
    rewritten.append(rows("+U a 1 12"))

    assert rewritten.log.description()["log.kafka.topic"].endswith("/shop.orders-v2")
    source = catalog.load_table("shop.orders").stream()
    first = source.poll()
    assert first is not None
    rewritten.append(rows("-D b 3 30"))
    then = source.poll()
    assert then is not None
    assert sorted((row["_row_kind"], row["id"], row["price"]) for row in first.to_pylist()) == [
        ("+I", 1, 12),
        ("+I", 3, 30),
    ]
    assert [(row["_row_kind"], row["id"]) for row in then.to_pylist()] == [("-D", 3)]
    again = rewritten.rewrite(options={"bucket": "4"})
    assert again.log is not None
    assert again.log.description()["log.kafka.topic"].endswith("/shop.orders-v3")


@pytest.mark.parametrize("kind", ["counted", "append-only"])
def test_a_table_gets_a_primary_key(kind: str) -> None:
    options = {} if kind == "counted" else {"write-mode": "append-only"}
    table = keyless(catalog_over(fake_environment()), **options)
    table.append(inserted("a 1 10", "a 2 20"))
    table.append(inserted("b 1 30"))

    keyed = table.rewrite(primary_key=["dt", "id"])
    keyed.append(rows("+U a 1 11", "-D a 2 20"))

    assert keyed.schema.primary_keys == ("dt", "id")
    assert not keyed.schema.field("id").type.nullable
    assert content(keyed) == {"a 1 11", "b 1 30"}
    assert {each["id"] for each in table.refresh().read(snapshot_id=1).read_all().to_pylist()} == {1, 2}


def test_rows_that_share_a_key_are_shown_and_nothing_is_changed() -> None:
    table = keyless(catalog_over(fake_environment()))
    table.append(inserted("a 1 10", "a 1 11", "a 2 20", "b 1 30", "b 1 30"))

    with pytest.raises(InvalidInputError, match=r"2 rows have the key of another one: dt='a', id=1 in 2 rows"):
        table.rewrite(primary_key=["dt", "id"])

    assert table.refresh().schema == table.schema
    assert len(table.to_arrow()) == 5
    table.append(rows("-D a 1 11", "-D b 1 30"))
    assert content(table.rewrite(primary_key=["dt", "id"])) == {"a 1 10", "a 2 20", "b 1 30"}


def test_a_null_in_the_key_to_be_is_refused_with_its_column() -> None:
    table = keyless(catalog_over(fake_environment()))
    table.append(inserted("a 1 10", "a 2 -"))

    with pytest.raises(InvalidInputError, match=r"column 'price' is part of the primary key, but 1 of"):
        table.rewrite(primary_key=["dt", "price"])

    assert table.refresh().schema == table.schema


def test_whoever_has_the_table_open_from_before_is_refused_and_told_of_the_new_topic() -> None:
    table = filled()
    source = table.stream()
    source.poll()
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    rewritten = table.rewrite(options={"bucket": "5"})
    before = content(rewritten)

    writes: tuple[Callable[[], object], ...] = (
        lambda: table.append(rows("+I z 1 1")),
        lambda: table.overwrite(rows("+I z 1 1"), change_tracking=False),
        lambda: table.overwrite(rows("+I a 1 1"), change_tracking=True),
        lambda: table.maintenance.drop_partitions([{"dt": "a"}]),
    )
    for write in writes:
        with pytest.raises(CommitConflictError, match="bucket=5 under schema 1"):
            write()
    clock.pass_time(60)
    source.poll()  # the end marker of the last transaction takes an offset as well
    with pytest.raises(InvalidInputError, match=r"its log is topic 'shop.orders-v2' now"):
        source.poll()
    assert content(rewritten) == before
    assert table.refresh().append(rows("+I z 1 1")) is not None


def test_a_position_in_the_old_log_is_refused_with_the_name_of_the_new_one() -> None:
    table = filled()
    source = table.stream()
    source.poll()
    position = source.position
    assert position is not None
    assert position.offsets is not None
    rewritten = table.rewrite(options={"bucket": "5"})

    with pytest.raises(InvalidInputError, match=r"its log is topic 'shop.orders-v2' now"):
        rewritten.stream(position=StreamPosition.from_json(position.to_json())).poll()


def test_a_stream_that_follows_snapshots_passes_a_change_of_buckets_without_a_word() -> None:
    table = filled(options={"log.system": "none"})
    source = table.stream()
    source.poll()
    rewritten = table.rewrite(options={"bucket": "5"})
    rewritten.append(rows("+I c 9 90"))

    follower = rewritten.stream(position=source.position, on_untracked="fail")

    changes = follower.poll()
    assert changes is not None
    assert changes["id"].to_pylist() == [9]


def test_a_stream_that_follows_snapshots_is_refused_where_a_key_came() -> None:
    table = keyless(catalog_over(fake_environment()), **NO_KEY)
    table.append(inserted("a 1 10"))
    source = table.stream()
    source.poll()
    keyed = table.rewrite(primary_key=["dt", "id"])

    with pytest.raises(InvalidInputError, match="was rewritten since it was opened here"):
        source.poll()
    with pytest.raises(InvalidInputError, match="was rewritten"):
        keyed.stream(position=source.position).poll()
    with pytest.raises(InvalidInputError, match="was rewritten since"):
        table.to_arrow()


def test_a_rollback_and_changes_across_a_rewriting_are_refused_with_the_way_round() -> None:
    rewritten = filled(options={"log.system": "none"}).rewrite(options={"bucket": "5"})

    with pytest.raises(InvalidInputError, match="the rows of VERSION AS OF 2"):
        rewritten.rollback_to(snapshot_id=2)
    with pytest.raises(InvalidInputError, match="read the changes since snapshot 6"):
        rewritten.changes(start_snapshot_id=2)
    assert len(rewritten.to_arrow(snapshot_id=2)) == 2
    assert {row["id"] for row in rewritten.inspect.system_table("audit_log").to_pylist()} == {1, 3}


def test_the_same_layout_is_nothing_to_do() -> None:
    table = filled()
    assert table.rewrite(options={"bucket": "2"}).schema.id == table.schema.id
    assert len(table.inspect.snapshots()) == len(FILLED)


def test_later_changes_of_the_schema_keep_the_layout() -> None:
    table = filled().rewrite(options={"bucket": "5"}).alter(AddColumn("note", "STRING"))
    table.append(rows("+I c 9 90").append_column("note", pa.nulls(1)))
    assert table.schema.id == 2
    assert table.refresh().schema == table.schema
    assert streamed(table, StreamPosition(snapshot_id=6, offsets=LogOffsets(), table_uuid=table.uuid, layout=1)) == [
        "+I c 9 90"
    ]


def test_dropping_a_rewritten_table_takes_its_earlier_logs_away() -> None:
    catalog = catalog_over(fake_environment())
    table = filled(catalog)
    rewritten = table.rewrite(options={"bucket": "3"}).rewrite(options={"bucket": "4"})
    assert rewritten.schema.options["dynamic-table.earlier-topics"] == "shop.orders,shop.orders-v2"

    catalog.drop_table("shop.orders")

    for log in (table.log, rewritten.log):
        assert log is not None
        with pytest.raises(StorageError):
            log.description()


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        (lambda c: orders(c, **{"log.consistency": "eventual"}), {"options": {"bucket": "3"}}, "log.consistency"),
        (orders, {"primary_key": ["id"]}, "has the primary key .dt, id. already"),
        (orders, {"options": {"file.format": "orc"}}, "does not affect the layout"),
        (orders, {"options": {"bucket": "0"}}, "bucket"),
        (keyless, {"primary_key": ["id"]}, "partition column 'dt' is not in the primary key"),
        (keyless, {"primary_key": ["dt", "nope"]}, "nope"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_written(table: Any, change: Any, message: str) -> None:
    opened = table(catalog_over(fake_environment()))
    with pytest.raises(InvalidInputError, match=message):
        opened.rewrite(**change)
    assert opened.refresh().schema == opened.schema
    assert opened.context.file_store.snapshots.latest_id() is None


def test_a_branch_is_not_rewritten() -> None:
    table = filled()
    table.branches.create("dev")
    with pytest.raises(InvalidInputError, match="is a branch"):
        table.branches.open("dev").rewrite(options={"bucket": "3"})


def test_merged_rows_of_other_engines_go_on_being_merged() -> None:
    merging = {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"}
    table = orders(None, **{"log.system": "none", **merging})
    table.append(inserted("a 1 10"))
    table.append(inserted("a 1 5"))
    rewritten = table.rewrite(options={"bucket": "3"})
    rewritten.append(inserted("a 1 1"))
    assert content(rewritten) == {"a 1 16"}


AGGREGATED: dict[str, tuple[str, list[Any]]] = {
    "sum": ("BIGINT", [5, None, 7]),
    "product": ("DECIMAL(20, 2)", [Decimal("1.50"), Decimal("2.00"), None]),
    "count": ("BIGINT", [100, None, 7]),
    "min": ("BIGINT", [5, 3, None]),
    "max": ("BIGINT", [5, 3, None]),
    "first_value": ("STRING", [None, "b", "c"]),
    "first_non_null_value": ("STRING", [None, "b", "c"]),
    "last_value": ("STRING", ["a", "b", None]),
    "last_non_null_value": ("STRING", ["a", "b", None]),
    "listagg": ("STRING", ["a", "b", None]),
    "bool_and": ("BOOLEAN", [True, None, False]),
    "bool_or": ("BOOLEAN", [False, None, True]),
    "collect": ("ARRAY<INT>", [[1, 2], None, [2]]),
    "merge_map": ("MAP<STRING, INT>", [[("a", 1)], None, [("a", 2), ("b", 3)]]),
}


@pytest.mark.parametrize("function", AGGREGATED)
@pytest.mark.parametrize("memory", ["256 mb", "64 kb"])
def test_a_rewriting_leaves_the_rows_of_every_aggregate_function_as_they_are(function: str, memory: str) -> None:
    kind, values = AGGREGATED[function]
    table = MemoryCatalog({"log.system": "none"}).create_table(
        "d.t",
        {"id": "INT", "v": kind},
        primary_key=["id"],
        options={
            "merge-engine": "aggregation",
            "fields.v.aggregate-function": function,
            "bucket": "1",
            "write-buffer-size": memory,
        },
    )
    for value in values:
        table.append(pa.table({"id": [1], "v": [value]}, table.arrow_schema))
    table.append(pa.table({"id": [2], "v": [values[0]]}, table.arrow_schema))
    before = table.to_arrow().sort_by("id").to_pylist()

    rewritten = table.rewrite(options={"bucket": "3"})

    assert rewritten.to_arrow().sort_by("id").to_pylist() == before
    rewritten.compact()
    assert rewritten.to_arrow().sort_by("id").to_pylist() == before
    for handle in (table.refresh(), rewritten):
        handle.append(pa.table({"id": [2], "v": [values[-1]]}, table.arrow_schema))
    again = MemoryCatalog({"log.system": "none"}).create_table(
        "d.t", {"id": "INT", "v": kind}, primary_key=["id"], options=dict(table.schema.options)
    )
    for value in (values[0], values[-1], values[-1]):
        again.append(pa.table({"id": [2], "v": [value]}, table.arrow_schema))
    assert rewritten.to_arrow(filter="id = 2").to_pylist() == again.to_arrow().to_pylist()


def test_rows_larger_than_the_memory_for_writing_are_spilled() -> None:
    table = orders(None, **{"write-buffer-size": "64 kb", "log.system": "none"})
    count = 20_000
    table.append(
        pa.table(
            {"dt": ["a"] * count, "id": pa.array(range(count), pa.int64()), "price": pa.array(range(count), pa.int64())}
        )
    )
    rewritten = table.rewrite(options={"bucket": "3"})
    assert sorted(rewritten.to_arrow()["price"].to_pylist()) == list(range(count))


# --- concurrent writers, and crashes -----------------------------------------------------------------------------


def test_an_append_without_a_lease_in_between_is_carried_over() -> None:
    """Appends to such a table commute and take no lease: the rewrite detects them, and starts over."""
    environment = fake_environment()
    table = keyless(catalog_over(environment), **{"write-mode": "append-only"}, **NO_KEY)
    table.append(inserted("a 1 10"))
    came: list[object] = []

    class Crowded(FaultyFileIO):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            if path.endswith("schema-1") and not came:
                came.append(table.append(inserted("a 2 20")))
            return super().create_if_absent(path, data)

    rewriting = catalog_over(replace(environment, file_io=Crowded(environment.file_io))).load_table("shop.visits")
    keyed = rewriting.rewrite(primary_key=["dt", "id"])
    assert came
    assert content(keyed) == {"a 1 10", "a 2 20"}


def test_two_who_rewrite_at_a_time_do_it_one_after_the_other() -> None:
    table = filled(catalog_over(system_environment(MemoryFileIO())))
    results: list[object] = []

    def rewrite(count: str) -> None:
        try:
            results.append(table.rewrite(options={"bucket": count}))
        except BaseException as error:  # noqa: BLE001  shown by the assertion below
            results.append(error)

    threads = [threading.Thread(target=rewrite, args=(count,)) for count in ("3", "4")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(each) for each in results] == [DynamicTable, DynamicTable], results
    assert content(table.refresh()) == LEFT
    assert table.refresh().schema.bucket_count in (3, 4)


def test_a_rewriting_that_slept_can_not_come_into_force_behind_an_alter_that_gave_it_up() -> None:
    """It resumes right before it creates its snapshot; its successor's marker already has that number."""
    environment = fake_environment()
    catalog = catalog_over(environment)
    filled(catalog, {"lease.timeout": "5 s"})
    altered: list[DynamicTable] = []

    class Asleep(FaultyFileIO):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            if path.endswith(f"snapshot-{len(FILLED) + 1}") and not altered:
                altered.append(catalog.load_table("shop.orders").alter(AddColumn("note", "STRING")))
            return super().create_if_absent(path, data)

    sleeper = _mortal(catalog, environment, Asleep(environment.file_io)).load_table("shop.orders")
    with pytest.raises(RetryableError):
        sleeper.rewrite(options={"bucket": "3"})

    assert [table.schema.bucket_count for table in altered] == [2]
    table = catalog.load_table("shop.orders")
    assert (table.schema.bucket_count, table.schema.fields[-1].name) == (2, "note")
    table.append(rows("+I c 9 90").append_column("note", pa.nulls(1)))
    assert {each["id"] for each in table.to_arrow().to_pylist()} == {1, 3, 9}


def test_a_death_before_the_schema_leaves_no_topic_in_the_way_of_another_number_of_buckets() -> None:
    environment = fake_environment()
    catalog = catalog_over(environment)
    filled(catalog, {"lease.timeout": "5 s"})
    fault = Fault(FaultKind.CRASH_BEFORE, operation="create_if_absent", path="schema-1")
    crashing = _mortal(catalog, environment, FaultyFileIO(environment.file_io, fault))
    _run(crashing, "shop.orders", LayoutChange(options={"bucket": "3"}), crashes=True)

    rewritten = catalog.load_table("shop.orders").rewrite(options={"bucket": "7"})

    assert (rewritten.schema.bucket_count, content(rewritten)) == (7, LEFT)


CHANGES: dict[str, tuple[Callable[[MemoryCatalog], DynamicTable], LayoutChange, set[str]]] = {
    "buckets": (filled, LayoutChange(options={"bucket": "3"}), LEFT),
    "key": (
        lambda catalog: _with_rows(keyless(catalog, **{"lease.timeout": "5 s"})),
        LayoutChange(primary_key=("dt", "id")),
        {"a 1 10", "b 1 30"},
    ),
}


def _with_rows(table: DynamicTable) -> DynamicTable:
    table.append(inserted("a 1 10", "b 1 30"))
    return table


@pytest.mark.parametrize("name", list(CHANGES))
def test_whenever_it_dies_the_table_is_the_old_or_the_new_one_and_others_go_on(name: str) -> None:
    """Crash before each operation that finds the stores changed: then others write, alter, and rewrite again."""
    make, change, expected = CHANGES[name]
    count, places = _acts_of(make, change)
    seen = set()
    for turn, at in enumerate([*places, count + 1], start=1):
        environment = fake_environment()
        catalog = catalog_over(environment)
        table = make(catalog)
        storage = FaultyFileIO(environment.file_io, Fault(FaultKind.CRASH_BEFORE, at=at))
        _run(_mortal(catalog, environment, storage), table.name, change, crashes=at <= count)
        when = f"died before act {at} of {count}"

        survivor = catalog.load_table(table.name)
        seen.add(survivor.schema.id)
        assert content(survivor) == expected, when
        survivor.append(rows("+I c 9 90") if survivor.schema.primary_keys else inserted("c 9 90"))
        if turn % 2:
            survivor = survivor.alter(AddColumn("note", "STRING")) if survivor.schema.primary_keys else survivor
        other = change.options
        if turn % 3 == 0 and change.options:
            other = {"bucket": "7"}
        again = catalog.load_table(table.name).rewrite(primary_key=change.primary_key, options=other)
        assert content(again) == expected | {"c 9 90"}, when
        again.append(rows("-D c 9 90"))
        assert content(catalog.load_table(table.name)) == expected, when
        assert again.context.leases.holder() is None, when
    assert len(seen) > 1, "no crash came late enough for the rewrite to be done"


def _acts_of(make: Any, change: LayoutChange) -> tuple[int, list[int]]:
    environment = fake_environment()
    catalog = catalog_over(environment)
    table = make(catalog)
    files, places = environment.file_io, list[int]()
    assert isinstance(files, MemoryFileIO)
    storage = CrashPoints(files, state=lambda: (files_in(files), logs_in_memory()), changed=places.append)
    _run(_mortal(catalog, environment, storage), table.name, change, crashes=False)
    return len(storage.calls), places


def _mortal(catalog: MemoryCatalog, environment: Environment, storage: FaultyFileIO) -> MemoryCatalog:
    mortal = catalog_over(replace(environment, file_io=storage, new_name=CountedNames("mortal")))
    mortal.log_prefix = catalog.log_prefix
    return mortal


def _run(catalog: MemoryCatalog, name: str, change: LayoutChange, *, crashes: bool) -> None:
    with pytest.raises(SimulatedCrash) if crashes else nullcontext():
        catalog.load_table(name).rewrite(primary_key=change.primary_key, options=change.options)
