"""Tables that a view admits, their random lives, and what a reader of Iceberg has to see after each commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from storage_lib import (
    AddColumn,
    AlterType,
    DropColumn,
    DynamicTable,
    InvalidInputError,
    MoveColumn,
    NotFoundError,
    RenameColumn,
    SetOption,
)
from storage_lib.catalog.catalog import Catalog

DAY = date(2026, 11, 1)
MOMENT = datetime(2026, 11, 1, 3, 4, 5, 678000)  # noqa: DTZ001  a TIMESTAMP has no zone
SCALARS: dict[str, Callable[[int], Any]] = {
    "BIGINT": lambda n: n * 3_000_000_000 - 7,
    "INT": lambda n: n - 9,
    "SMALLINT": lambda n: n * 300 - 300,
    "TINYINT": lambda n: n - 5,
    "STRING": lambda n: ("", "a", "b", "é", "z" * 40)[n % 5] + str(n // 5),
    "VARCHAR(30)": lambda n: f"v{n:03}",
    "BYTES": lambda n: bytes([n % 256, 0, 255]),
    "DATE": lambda n: DAY + timedelta(days=n * 40 - 200),
    "DECIMAL(9, 2)": lambda n: Decimal(n * 7 - 20) / 100,
    "DECIMAL(30, 4)": lambda n: Decimal(n * 10**20 - 5) / 10000,
    "TIMESTAMP(6)": lambda n: MOMENT + timedelta(hours=n, microseconds=n),
    "TIMESTAMP(4)": lambda n: MOMENT + timedelta(days=n),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": lambda n: (MOMENT + timedelta(minutes=n)).replace(tzinfo=UTC),
}
VALUES: dict[str, Callable[[int], Any]] = {
    **SCALARS,
    "BOOLEAN": lambda n: n % 2 == 0,
    "DOUBLE": lambda n: float("nan") if n % 7 == 0 else n / 8,
    "FLOAT": lambda n: n / 4,
    "ARRAY<STRING>": lambda n: [None, f"x{n}"][: n % 3],
    "MAP<STRING, INT>": lambda n: [(f"k{each}", each) for each in range(n % 3)],
    "ROW<a INT, b ARRAY<INT>>": lambda n: {"a": n, "b": [n] * (n % 2)},
}
PARTITIONS = ("STRING", "INT", "DATE", "BIGINT", "DECIMAL(9, 2)", "TIMESTAMP(6)", "VARCHAR(30)")
WIDER = {
    "INT": "BIGINT",
    "TINYINT": "SMALLINT",
    "SMALLINT": "INT",
    "FLOAT": "DOUBLE",
    "DECIMAL(9, 2)": "DECIMAL(12, 2)",
}
KEYS = 40
FUNCTIONS = {
    "INT": ("sum", "max", "min", "count", "first_value", "last_value", "product"),
    "SMALLINT": ("max", "last_non_null_value"),
    "BIGINT": ("sum", "min", "first_non_null_value"),
    "DECIMAL(30, 4)": ("max", "sum"),
    "DOUBLE": ("max", "last_value"),
    "STRING": ("listagg", "max", "last_value"),
    "DATE": ("min", "max"),
    "TIMESTAMP(6)": ("max",),
    "BOOLEAN": ("bool_or", "bool_and"),
    "ARRAY<STRING>": ("collect", "last_value"),
    "MAP<STRING, INT>": ("merge_map",),
}
"""Aggregate functions by type; the last non-null value is the default."""


@dataclass
class DrawnView:
    """A table of a life; ``makers`` return a value of each column by number."""

    table: DynamicTable
    key: tuple[str, ...]
    partition: str | None
    makers: dict[str, Callable[[int], Any]]
    options: dict[str, str]
    tags: list[str] = field(default_factory=list)
    step: int = 0
    begins: int = 0
    """The snapshot with which the view began again."""

    @property
    def is_append_only(self) -> bool:
        return not self.key

    @property
    def takes_deletions(self) -> bool:
        return self.options.get("ignore-delete") != "true"

    @property
    def combines(self) -> bool:
        return self.options.get("merge-engine") in COMBINING

    @property
    def shows_each(self) -> bool:
        """Whether a reader of Iceberg sees each commit, because compactions follow it that merge its rows."""
        return not self.combines or (self.options["write-only"] == "false" and self.table.options.looks_up)


VERSIONS = ("2", "3")
COMBINING = ("partial-update", "aggregation")
KINDS = ("deduplicate",) * 6 + ("first-row", "append-only", *COMBINING) * 2


def draw_view(
    rng: Random,
    catalog: Catalog,
    name: str = "d.t",
    storages: Sequence[str] = ("table-location", "hadoop-catalog"),
    kinds: Sequence[str] = KINDS,
) -> DrawnView:
    """Create a table of one of the ``kinds`` with random columns and options, with its view in one of ``storages``."""
    while True:
        kind = rng.choice(kinds)
        partition = "p" if rng.random() < 0.5 else None
        types: dict[str, str] = {}
        if partition:
            types["p"] = rng.choice(PARTITIONS)
        for each in ("k", "l")[: rng.choice([1, 1, 2])]:
            types[each] = rng.choice(list(SCALARS))
        key = () if kind == "append-only" else tuple(types)
        types["n"] = "INT"
        types |= {f"c{place}": rng.choice(list(VALUES)) for place in range(rng.randrange(1, 5))}
        options = _options(rng, kind, storages) | _functions(rng, kind, types, key)
        try:
            table = catalog.create_table(
                name,
                {name: f"{of} NOT NULL" if name in key else of for name, of in types.items()},
                primary_key=list(key),
                partition_by=[partition] if partition else [],
                options=options,
            )
        except InvalidInputError as error:
            if "metadata.iceberg" in str(error):
                raise
            continue
        makers = {name: VALUES[of] for name, of in types.items()}
        return DrawnView(table, key, partition, makers, options)


def _options(rng: Random, kind: str, storages: Sequence[str]) -> dict[str, str]:
    options = {
        "metadata.iceberg.storage": rng.choice(storages),
        "metadata.iceberg.format-version": rng.choice(VERSIONS),
        "log.system": "none",
        "target-file-size": rng.choice(["128 mb", "4 kb"]),
        "num-sorted-run.compaction-trigger": rng.choice(["2", "3", "5"]),
        "write-only": rng.choice(["false", "false", "true"]),
    }
    if kind == "append-only":
        return {**options, "write-mode": "append-only", "compaction.min.file-num": "3"}
    options |= {"bucket": rng.choice(["1", "2", "3", "-1"])}
    if options["bucket"] == "-1":
        options["dynamic-bucket.target-row-num"] = "15"
    if rng.random() < 0.2:
        options["compaction.strategy"] = "leveled"
    if kind == "first-row":
        return {**options, "merge-engine": "first-row", "ignore-delete": "true"}
    if kind in COMBINING:
        options["merge-engine"] = kind
        options |= rng.choice([{"ignore-delete": "true"}, {f"{kind}.remove-record-on-delete": "true"}])
    options["changelog-producer"] = rng.choice(["none", "none", "input", "lookup", "full-compaction"])
    if rng.random() < 0.3:
        options["deletion-vectors.enabled"] = "true"
    if rng.random() < 0.2:
        options["force-lookup"] = "true"
    if rng.random() < 0.4:
        options["sequence.field"] = "n"
        options["sequence.field.sort-order"] = rng.choice(["ascending", "descending"])
    return options


def _functions(rng: Random, kind: str, types: dict[str, str], key: tuple[str, ...]) -> dict[str, str]:
    """Return the aggregate functions of columns."""
    if kind != "aggregation":
        return {}
    found = {name: of for name, of in types.items() if name not in key and of in FUNCTIONS and rng.random() < 0.8}
    return {f"fields.{name}.aggregate-function": rng.choice(FUNCTIONS[of]) for name, of in found.items()}


def arrow_of(drawn: DrawnView, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows with the table's types."""
    names = [name for name in rows[0] if name != "_row_kind"]
    fields = [pa.field(name, drawn.table.arrow_schema.field(name).type) for name in names]
    kinds = [pa.field("_row_kind", pa.string())] if "_row_kind" in rows[0] else []
    return pa.Table.from_pylist(rows, pa.schema([*fields, *kinds]))


def rows_of(drawn: DrawnView, rng: Random, count: int) -> list[dict[str, Any]]:
    """Return rows with random keys, among which some repeat."""
    rows = []
    for _ in range(count):
        row = {
            name: make(rng.randrange(KEYS) if name in drawn.key else rng.randrange(100))
            if name in drawn.key or rng.random() < 0.8
            else None
            for name, make in drawn.makers.items()
        }
        if drawn.partition:
            value = drawn.makers[drawn.partition](rng.randrange(3))
            row[drawn.partition] = None if drawn.is_append_only and rng.random() < 0.2 else value
        rows.append(row)
    return rows


def move(drawn: DrawnView, rng: Random) -> str:
    """Change the table once, or try to; return what was done."""
    drawn.step += 1
    drawn.table = drawn.table.refresh()
    name = rng.choice(_MOVES)
    _BY_NAME[name](drawn, rng)
    return name


def _append(drawn: DrawnView, rng: Random) -> None:
    drawn.table.append(arrow_of(drawn, rows_of(drawn, rng, rng.choice([1, 3, 20, 60]))))


def _blind_changes(drawn: DrawnView, rng: Random) -> None:
    """Write deletions of keys that there need not be, with older or newer sequence fields."""
    rows = rows_of(drawn, rng, 15)
    if drawn.is_append_only or not drawn.takes_deletions:
        drawn.table.append(arrow_of(drawn, rows))
        return
    changes = [{**row, "_row_kind": rng.choice(["+I", "-D"])} for row in rows]
    drawn.table.append(arrow_of(drawn, changes))


def _delete(drawn: DrawnView, rng: Random) -> None:
    if drawn.is_append_only or not drawn.takes_deletions or drawn.combines:
        return
    keys = [{name: row[name] for name in drawn.key} for row in rows_of(drawn, rng, 10)]
    drawn.table.delete(arrow_of(drawn, keys))


def _delete_some(drawn: DrawnView, rng: Random) -> None:
    if drawn.is_append_only or not drawn.takes_deletions or drawn.combines:
        return
    low = rng.randrange(100)
    drawn.table.delete(rng.choice([f"n > {low}", "n IS NULL", "n >= -9 OR n IS NULL"]))


def _update(drawn: DrawnView, rng: Random) -> None:
    if drawn.is_append_only or not drawn.takes_deletions or drawn.combines or "sequence.field" in drawn.options:
        return
    drawn.table.update(f"n > {rng.randrange(100)}", {"n": drawn.step})


def _overwrite(drawn: DrawnView, rng: Random) -> None:
    rows = rows_of(drawn, rng, 20)
    if drawn.partition is None or rng.random() < 0.3:
        drawn.table.overwrite(arrow_of(drawn, rows))
        return
    value = rows[0][drawn.partition]
    same = arrow_of(drawn, [{**row, drawn.partition: value} for row in rows])
    drawn.table.overwrite(same, partition={drawn.partition: value})


def _drop_partition(drawn: DrawnView, rng: Random) -> None:
    if drawn.partition is not None:
        try:
            value = drawn.makers[drawn.partition](rng.randrange(3))
            drawn.table.maintenance.drop_partitions([{drawn.partition: value}])
        except NotFoundError:
            pass


def _compact(drawn: DrawnView, rng: Random) -> None:
    drawn.table.compact(full=rng.random() < 0.5)


def _roll_back(drawn: DrawnView, rng: Random) -> None:
    history = drawn.table.context.file_store.snapshots
    latest, earliest = history.latest_id(), history.earliest_id()
    if latest is not None and earliest is not None and latest > earliest:
        drawn.table.rollback_to(snapshot_id=rng.randrange(earliest, latest))


def _alter(drawn: DrawnView, rng: Random) -> None:
    others = [name for name in drawn.makers if name.startswith("c")]
    types = {each.name: str(each.type) for each in drawn.table.schema.fields}
    what = rng.choice(["add", "drop", "rename", "widen", "rename key", "first"])
    if what == "add":
        name, of = f"c{drawn.step + 10}", rng.choice(list(VALUES))
        drawn.table = drawn.table.alter(AddColumn(name, of))
        drawn.makers[name] = VALUES[of]
    elif what == "drop" and len(others) > 1:
        name = rng.choice(others)
        if drawn.combines and any("aggregate-function" in option for option in drawn.table.schema.options):
            return  # options may name the column
        drawn.table = drawn.table.alter(DropColumn(name))
        del drawn.makers[name]
    elif what == "rename" and others:
        name, new_name = rng.choice(others), f"c{drawn.step + 20} x"
        drawn.table = drawn.table.alter(RenameColumn(name, new_name))
        drawn.makers[new_name] = drawn.makers.pop(name)
    elif what == "widen":
        for name in others:
            if types[name] in WIDER:
                drawn.table = drawn.table.alter(AlterType(name, WIDER[types[name]]))
                return
    elif what == "rename key" and drawn.key and drawn.key[-1] != drawn.partition:
        name, new_name = drawn.key[-1], f"k{drawn.step}"
        drawn.table = drawn.table.alter(RenameColumn(name, new_name))
        drawn.makers = {new_name if each == name else each: make for each, make in drawn.makers.items()}
        drawn.key = (*drawn.key[:-1], new_name)
    elif what == "first":
        drawn.table = drawn.table.alter(MoveColumn("n", first=True))


def _switch_version(drawn: DrawnView, rng: Random) -> None:
    """Let the view begin again, with the other version of the format; the former one's files are orphans then."""
    name = "metadata.iceberg.format-version"
    before, version = drawn.table.schema.options[name], rng.choice(VERSIONS)
    drawn.table = drawn.table.alter(SetOption(name, version))
    if before != version:
        drawn.begins = drawn.table.inspect.latest_snapshot_id() or 0
        removed = drawn.table.maintenance.remove_orphan_files(older_than=timedelta(0))
        assert all("/metadata/" in path for path in removed.paths)


def _expire(drawn: DrawnView, rng: Random) -> None:
    drawn.table.maintenance.expire_snapshots(retain_last=rng.choice([1, 3]))


def _tag(drawn: DrawnView, rng: Random) -> None:
    if drawn.tags and rng.random() < 0.4:
        drawn.table.tags.delete(drawn.tags.pop())
    elif drawn.table.inspect.latest_snapshot_id() is not None:
        name = f"t{drawn.step}"
        drawn.table.tags.create(name)
        drawn.tags.append(name)


def _orphans(drawn: DrawnView, rng: Random) -> None:
    removed = drawn.table.maintenance.remove_orphan_files(older_than=timedelta(0))
    assert removed.paths == ()


_BY_NAME: dict[str, Callable[[DrawnView, Random], None]] = {
    "append": _append,
    "blind changes": _blind_changes,
    "delete": _delete,
    "delete some": _delete_some,
    "update": _update,
    "overwrite": _overwrite,
    "drop partition": _drop_partition,
    "compact": _compact,
    "roll back": _roll_back,
    "alter": _alter,
    "switch version": _switch_version,
    "expire": _expire,
    "tag": _tag,
    "orphans": _orphans,
}
_MOVES = [*_BY_NAME, "append", "append", "append", "blind changes", "blind changes", "delete", "compact", "compact"]


def rows_at(table: DynamicTable, number: int) -> pa.Table:
    """Return the rows of a snapshot, which may have expired if a tag keeps it."""
    tags = [tag.name for tag in table.tags.list() if tag.snapshot.id == number]
    return table.to_arrow(tag=tags[0]) if tags else table.to_arrow(snapshot_id=number)
