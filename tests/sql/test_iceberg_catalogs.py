"""CREATE CATALOG of type iceberg: tables in directories and of a REST catalog in the queries of a session."""

from __future__ import annotations

import datetime as dt
import json
import random
import shutil
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.sql.state.session_catalogs import open_session_catalog
from tests.support.served_catalogs import TOKENS, client_file, serving

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from storage_lib.sql import Session

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),  # some draw none
]

Rows = list[dict[str, Any]]
DAY = dt.date(2024, 5, 14)


class Lake:
    """Tables that PyIceberg writes, published as a Hadoop catalog would after each commit."""

    def __init__(self, warehouse: Path) -> None:
        warehouse.mkdir()
        self.warehouse = warehouse
        self.catalog = InMemoryCatalog("writer", warehouse=str(warehouse))
        self.catalog.create_namespace("shop")

    def create(self, name: str, schema: Schema | pa.Schema, **more: Any) -> Table:
        table = self.catalog.create_table(f"shop.{name}", schema=schema, **more)
        self.publish(name)
        return table

    def publish(self, name: str) -> None:
        newest = Path(self.catalog.load_table(f"shop.{name}").metadata_location)
        number = int(newest.name.partition("-")[0]) + 1
        shutil.copyfile(newest, newest.with_name(f"v{number}.metadata.json"))


@pytest.fixture
def lake(tmp_path: Path, sql: Session) -> Lake:
    """Return a warehouse that is open as the catalog ``lake``."""
    lake = Lake(tmp_path / "lake")
    sql.execute(f"CREATE CATALOG lake WITH ('type' = 'iceberg', 'warehouse' = '{lake.warehouse}')")
    return lake


def rows_of(sql: Session, query: str) -> Rows:
    return sorted(sql.execute(query).to_arrow().to_pylist(), key=repr)


class History:
    """An Iceberg table and the rows that it should have, changed at random."""

    SCHEMA = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "part", StringType(), required=False),
        NestedField(3, "day", DateType(), required=False),
        NestedField(4, "v0", StringType(), required=False),
    )

    def __init__(self, lake: Lake, chance: random.Random) -> None:
        self.lake = lake
        self.chance = chance
        self.rows: Rows = []
        self.columns: list[tuple[str, pa.DataType]] = [
            ("id", pa.int32()),
            ("part", pa.string()),
            ("day", pa.date32()),
            ("v0", pa.string()),
        ]
        self.next_id = 0
        of_part, of_day = (
            PartitionField(2, 1000, IdentityTransform(), "p"),
            PartitionField(3, 1001, IdentityTransform(), "d"),
        )
        fields = chance.choice(((), (of_part,), (of_day,), (of_part, of_day)))
        version = chance.choice(("1", "2"))
        self.table = lake.create(
            "t", self.SCHEMA, partition_spec=PartitionSpec(*fields), properties={"format-version": version}
        )

    def change(self) -> None:
        changes = [self._append, self._append, self._delete, self._overwrite, self._add, self._rename, self._widen]
        self.chance.choice(changes)()
        self.lake.publish("t")

    def condition(self) -> tuple[str, Callable[[dict[str, Any]], bool]]:
        """Draw a condition in SQL, and the same in Python."""
        limit, part = self.chance.randint(0, self.next_id), self.chance.choice(("a", "b c", "c"))
        day = DAY + dt.timedelta(days=self.chance.randrange(4))
        drawn: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
            (f"id < {limit}", lambda row: row["id"] < limit),
            (f"part = '{part}'", lambda row: row["part"] == part),
            ("part IS NULL", lambda row: row["part"] is None),
            ("day IS NOT NULL", lambda row: row["day"] is not None),
            (f"day >= DATE '{day}'", lambda row: row["day"] is not None and row["day"] >= day),
            (f"NOT part <=> '{part}' AND id >= {limit}", lambda row: row["part"] != part and row["id"] >= limit),
            (f"part IN ('{part}', 'd') OR id = {limit}", lambda row: row["part"] == part or row["id"] == limit),
        )
        return self.chance.choice(drawn)

    def _drawn(self) -> pa.Table:
        new = []
        for _ in range(self.chance.randint(1, 6)):
            row: dict[str, Any] = {name: self.chance.choice((None, "x", "ü/%20")) for name, _ in self.columns}
            day = self.chance.choice((None, DAY + dt.timedelta(days=self.chance.randrange(4))))
            new.append(row | {"id": self.next_id, "part": self.chance.choice(("a", "b c", None)), "day": day})
            self.next_id += 1
        self.rows = [*self.rows, *new]
        return pa.Table.from_pylist(new, schema=pa.schema(self.columns))

    def _append(self) -> None:
        self.table.append(self._drawn())

    def _delete(self) -> None:
        limit = self.chance.randint(0, self.next_id)
        self.rows = [row for row in self.rows if row["id"] >= limit]
        self.table.delete(f"id < {limit}")

    def _overwrite(self) -> None:
        part = self.chance.choice(("a", "b c"))
        self.rows = [row for row in self.rows if row["part"] != part]
        self.table.overwrite(self._drawn(), overwrite_filter=f"part = '{part}'")

    def _add(self) -> None:
        name = f"v{len(self.columns)}"
        self.columns.append((name, pa.string()))
        self.rows = [{**row, name: None} for row in self.rows]
        with self.table.update_schema() as update:
            update.add_column(name, StringType())

    def _rename(self) -> None:
        place = self.chance.randrange(3, len(self.columns))
        old, new = self.columns[place][0], f"r{self.chance.randrange(10**6)}"
        self.columns[place] = (new, pa.string())
        self.rows = [{new if name == old else name: value for name, value in row.items()} for row in self.rows]
        with self.table.update_schema() as update:
            update.rename_column(old, new)

    def _widen(self) -> None:
        if self.columns[0][1] == pa.int32():
            self.columns[0] = ("id", pa.int64())
            with self.table.update_schema() as update:
                update.update_column("id", LongType())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 12))])
def test_each_snapshot_of_a_random_history_has_the_rows_that_were_written(sql: Session, lake: Lake, seed: int) -> None:
    history = History(lake, random.Random(seed))  # noqa: S311
    snapshots: dict[int, Rows] = {}
    assert rows_of(sql, "SELECT * FROM lake.shop.t") == []
    for _ in range(7):
        history.change()
        newest = history.table.current_snapshot()
        if newest is not None:
            snapshots.setdefault(newest.snapshot_id, history.rows)
        assert rows_of(sql, "SELECT * FROM lake.shop.t") == sorted(history.rows, key=repr)
        condition, holds = history.condition()
        wanted = [{"id": row["id"]} for row in history.rows if holds(row)]
        assert rows_of(sql, f"SELECT id FROM lake.shop.t WHERE {condition}") == sorted(wanted, key=repr), condition  # noqa: S608
        counted = rows_of(sql, f"SELECT count(*) AS n FROM lake.shop.t WHERE {condition}")  # noqa: S608
        assert counted == [{"n": len(wanted)}]

    for snapshot, rows in snapshots.items():
        assert rows_of(sql, f"SELECT * FROM lake.shop.t VERSION AS OF {snapshot}") == sorted(rows, key=repr)  # noqa: S608


EVERY_TYPE = pa.table(
    {
        "bool": pa.array([True, None]),
        "int": pa.array([2**31 - 1, None], pa.int32()),
        "long": pa.array([-(2**63), None], pa.int64()),
        "float": pa.array([1.5, None], pa.float32()),
        "double": pa.array([float("inf"), None], pa.float64()),
        "decimal": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(38, 2)),
        "text": pa.array(["ü", None]),
        "bytes": pa.array([b"\x00\xff", None]),
        "fixed": pa.array([b"abc", None], pa.binary(3)),
        "date": pa.array([dt.date(1900, 1, 1), None]),
        "at": pa.array([dt.datetime(2024, 5, 14, 1, 2, 3, 456789, dt.UTC), None], pa.timestamp("us", "UTC")),
        "local": pa.array([dt.datetime(2024, 5, 14, 1, 2, 3, 456789), None], pa.timestamp("us")),  # noqa: DTZ001
        "list": pa.array([["a", None], None]),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": 1, "b": ["c"]}, None]),
    }
)


def test_values_of_every_type_arrive(sql: Session, lake: Lake) -> None:
    key = uuid.UUID(int=2**100 + 7)
    rows = EVERY_TYPE.append_column("uuid", pa.array([key.bytes, None], pa.uuid()))
    lake.create("t", rows.schema).append(rows)
    lake.publish("t")

    found = sql.execute("SELECT * FROM lake.shop.t").to_arrow()

    assert found.select(EVERY_TYPE.column_names).to_pylist() == EVERY_TYPE.to_pylist()
    assert found["uuid"].to_pylist() == [str(key), None]
    assert rows_of(sql, "SELECT struct.b[0] AS b FROM lake.shop.t WHERE `decimal` > 1") == [{"b": "c"}]


def test_files_without_a_matching_row_are_left_out(sql: Session, lake: Lake) -> None:
    table = lake.create("t", pa.schema([("id", pa.int64()), ("n", pa.float64())]))
    for first in (0, 10, 20):
        table.append(pa.table({"id": [first, first + 1], "n": [float("nan"), 1.0]}))
    lake.publish("t")
    files = sorted((Path(table.location()) / "data").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    files[0].unlink()

    assert rows_of(sql, "SELECT id FROM lake.shop.t WHERE id > 10") == [{"id": 11}, {"id": 20}, {"id": 21}]
    # NaN is the greatest number of SQL, and no bound of Iceberg's.
    assert rows_of(sql, "SELECT id FROM lake.shop.t WHERE n > 5 AND id > 10") == [{"id": 20}]
    with pytest.raises(InvalidInputError, match=r"lake\.shop\.t of Iceberg can't be read"):
        sql.execute("SELECT id FROM lake.shop.t WHERE id < 10").to_arrow()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 6))])
def test_the_iceberg_view_of_a_table_has_the_rows_of_the_table(sql: Session, warehouse: str, seed: int) -> None:
    """The views of a table with a key have deletion vectors, which PyIceberg does not write."""
    chance = random.Random(seed)  # noqa: S311
    table = open_catalog(warehouse).create_table(
        "shop.t",
        {"id": "INT", "v": "STRING", "p": "STRING"},
        primary_key=["id", "p"] if seed % 2 else ["id"],
        partition_by=["p"] if seed % 2 else [],
        options={"metadata.iceberg.storage": "hadoop-catalog", "log.system": "none", "bucket": str(1 + seed % 3)},
    )
    for number in range(4):
        changes = [
            {"_row_kind": chance.choice(("+I", "+U", "-D")), "id": chance.randrange(8), "v": str(number), "p": "a"}
            for _ in range(5)
        ]
        table.append(changes)
        if chance.random() < 0.2:
            table.compact(full=True)
        if number == 0:
            sql.execute(f"CREATE CATALOG views WITH ('type' = 'iceberg', 'warehouse' = '{warehouse}/iceberg')")
        assert rows_of(sql, "SELECT * FROM views.shop.t") == sorted(table.to_arrow().to_pylist(), key=repr)
    table.tags.create("kept")
    table.append([{"_row_kind": "-D", "id": key, "v": "", "p": "a"} for key in range(8)])

    assert rows_of(sql, "SELECT * FROM views.shop.t") == []
    kept = table.to_arrow(tag="kept").to_pylist()
    assert rows_of(sql, "SELECT * FROM views.shop.t VERSION AS OF 'kept'") == sorted(kept, key=repr)


def test_tables_of_a_rest_catalog_are_read_by_its_address(sql: Session, tmp_path: Path) -> None:
    table = open_catalog(tmp_path / "served").create_table(
        "shop.orders",
        {"id": "BIGINT", "item": "STRING"},
        primary_key=["id"],
        options={"metadata.iceberg.storage": "table-location", "log.system": "none"},
    )
    table.append([{"id": 1, "item": "tea"}, {"id": 2, "item": "cup"}])
    table.delete([{"id": 1}])
    with serving(tmp_path / "served", "--clients", str(client_file(tmp_path)), log=tmp_path / "log") as address:
        options = f"'type' = 'iceberg', 'uri' = '{address}/iceberg', 'token' = '{TOKENS['reports']}'"
        sql.execute(f"CREATE CATALOG served WITH ({options})")

        assert rows_of(sql, "SHOW TABLES IN served.shop")[0]["table"] == "orders"
        assert rows_of(sql, "SELECT * FROM served.shop.orders") == [{"id": 2, "item": "cup"}]
        assert len(rows_of(sql, "SELECT * FROM served.shop.orders VERSION AS OF 1")) == 2
        with pytest.raises(NotFoundError, match=r"table served\.shop\.order does not exist; did you mean 'orders'"):
            sql.execute("SELECT * FROM served.shop.order")
        with pytest.raises(InvalidInputError, match="client reports may not read this database"):
            sql.execute("SELECT * FROM served.private.salaries")
        with pytest.raises(InvalidInputError, match="refused the request"):
            open_session_catalog("x", {"type": "iceberg", "uri": f"{address}/iceberg", "token": "secret-guess"})

    with pytest.raises(UnavailableError, match="the REST catalog of served does not answer"):
        sql.execute("SELECT * FROM served.shop.orders")


def test_what_cannot_be_read_is_refused_with_the_reason(sql: Session, lake: Lake) -> None:
    lake.create("t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    # A table of a catalog that Hadoop's layout does not describe.
    lake.catalog.create_table("shop.other", schema=pa.schema([("id", pa.int64())]))
    lake.publish("t")
    for query, problem, kind in (
        (
            "SELECT * FROM lake.shop.other",
            r"another catalog knows which one is current; open that catalog by its 'uri'",
            InvalidInputError,
        ),
        ("SELECT * FROM lake.shop.none", r"table lake\.shop\.none does not exist", NotFoundError),
        ("SELECT * FROM lake.shop.`../shop/t`", r"does not exist", NotFoundError),
        ("SELECT * FROM lake.none.t", r"database lake\.none does not exist", NotFoundError),
        ("SELECT * FROM lake.shop.t VERSION AS OF 5", r"has no snapshot 5", InvalidInputError),
        ("SELECT * FROM lake.shop.t VERSION AS OF 'x'", r"has no snapshot named 'x'", InvalidInputError),
        ("SELECT * FROM lake.shop.t TIMESTAMP AS OF '2020-01-01'", r"has no snapshot until 2020", InvalidInputError),
    ):
        with pytest.raises(kind, match=problem):
            sql.execute(query).to_arrow()
    for options, problem in (
        ({"type": "iceberg"}, r"has no option 'warehouse'.*or 'uri', the address of a REST catalog"),
        (
            {"type": "iceberg", "warehouse": "/x", "token": "t"},
            r"has no option 'token'; it has 'type', 'warehouse', 'uri'",
        ),
        ({"type": "iceberg", "uri": "http://127.0.0.1:9", "py-io-impl": "os"}, r"has no option 'py-io-impl'"),
        ({"type": "iceberg", "warehouse": "hdfs://h/x"}, r"read from disks and object stores, not from hdfs://h/x"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            open_session_catalog("x", options)
    with pytest.raises(NoSuchNamespaceError):
        lake.catalog.list_tables("none")


def test_a_property_of_a_table_chooses_no_module(sql: Session, lake: Lake) -> None:
    """PyIceberg opens a table's files by the class that its property ``py-io-impl`` names."""
    table = lake.create("t", pa.schema([("id", pa.int64())]))
    metadata = Path(table.metadata_location).with_name("v1.metadata.json")
    document = json.loads(metadata.read_text())
    metadata.write_text(json.dumps({**document, "properties": {"py-io-impl": "tests.absent.Module"}}))

    assert rows_of(sql, "SELECT * FROM lake.shop.t") == []
