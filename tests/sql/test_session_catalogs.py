"""CREATE CATALOG: tables of Delta Lake and of other warehouses in the queries of a session."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from storage_lib import open_catalog
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.schema.filter.filter_text import parse_filter
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.sql.state.session_catalogs import open_session_catalog
from tests.support.delta_vectors import inline_vector

if TYPE_CHECKING:
    from storage_lib.sql import Session

pytestmark = pytest.mark.spark

FEATURES: tuple[dict[str, str], ...] = (
    {},
    {"delta.columnMapping.mode": "name"},
    {"delta.enableDeletionVectors": "true"},
)
Rows = list[dict[str, Any]]


@pytest.fixture
def lake(tmp_path: Path, sql: Session) -> Path:
    """Open a catalog ``lake`` of tables of Delta Lake; return the directory of its database ``shop``."""
    (tmp_path / "lake" / "shop").mkdir(parents=True)
    sql.execute(f"CREATE CATALOG lake WITH ('type' = 'delta', 'warehouse' = '{tmp_path / 'lake'}')")
    return tmp_path / "lake" / "shop"


def rows_of(sql: Session, query: str) -> Rows:
    return sorted(sql.execute(query).to_arrow().to_pylist(), key=repr)


class History:
    """A table of Delta Lake and the rows that it should have, changed at random."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = str(path)
        self.chance = chance
        self.rows: Rows = []
        self.columns = ["id", "part", "v0"]
        self.next_id = 0
        self.can_widen = True

    def create(self) -> None:
        partitions = self.chance.choice((None, ["part"]))
        features = self.chance.choice(FEATURES)
        self.can_widen = "delta.columnMapping.mode" not in features  # delta-rs can't add columns to the others
        write_deltalake(self.path, self._drawn(), partition_by=partitions, configuration=features)

    def change(self) -> None:
        changes = [self._append, self._append, self._delete, self._update, self._overwrite]
        self.chance.choice(changes + [self._widen] * self.can_widen)()

    def condition(self) -> tuple[str, Callable[[dict[str, Any]], bool]]:
        """Draw a condition in SQL, and the same in Python."""
        limit, part = self.chance.randint(0, self.next_id), self.chance.choice(("a", "b c", "c"))
        drawn: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
            (f"id < {limit}", lambda row: row["id"] < limit),
            (f"part = '{part}'", lambda row: row["part"] == part),
            ("part IS NULL", lambda row: row["part"] is None),
            ("part IS NOT NULL", lambda row: row["part"] is not None),
            (f"NOT part <=> '{part}' AND id >= {limit}", lambda row: row["part"] != part and row["id"] >= limit),
            (f"part IN ('{part}', 'd') OR id = {limit}", lambda row: row["part"] == part or row["id"] == limit),
            ("v0 = 'x' AND part > 'a'", lambda row: row["v0"] == "x" and (row["part"] or "") > "a"),
        )
        return self.chance.choice(drawn)

    def _drawn(self) -> pa.Table:
        """Draw new rows; they are in the table once it is written."""
        new = []
        for _ in range(self.chance.randint(1, 6)):
            row: dict[str, Any] = {each: self.chance.choice((None, "x", "y z", "ü/%20")) for each in self.columns}
            new.append(row | {"id": self.next_id, "part": self.chance.choice(("a", "b c", None))})
            self.next_id += 1
        self.rows = [*self.rows, *new]
        return pa.Table.from_pylist(
            new, schema=pa.schema([(each, pa.int64() if each == "id" else pa.string()) for each in self.columns])
        )

    def _append(self) -> None:
        write_deltalake(self.path, self._drawn(), mode="append")

    def _widen(self) -> None:
        self.columns.append(f"v{len(self.columns) - 2}")
        self.rows = [{name: row.get(name) for name in self.columns} for row in self.rows]
        DeltaTable(self.path).alter.add_columns([_string_field(self.columns[-1])])

    def _overwrite(self) -> None:
        self.rows = []
        write_deltalake(self.path, self._drawn(), mode="overwrite")

    def _delete(self) -> None:
        limit = self.chance.randint(0, self.next_id)
        self.rows = [row for row in self.rows if row["id"] >= limit]
        DeltaTable(self.path).delete(f"id < {limit}")

    def _update(self) -> None:
        limit = self.chance.randint(0, self.next_id)
        self.rows = [row | {"v0": "new"} if row["id"] < limit else row for row in self.rows]
        DeltaTable(self.path).update(predicate=f"id < {limit}", new_values={"v0": "new"})


def _string_field(name: str) -> Any:
    from deltalake.schema import Field, PrimitiveType

    return Field(name, PrimitiveType("string"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 12))])
def test_each_version_of_a_random_history_has_the_rows_that_were_written(sql: Session, lake: Path, seed: int) -> None:
    history = History(lake / "t", random.Random(seed))  # noqa: S311
    history.create()
    versions = {DeltaTable(history.path).version(): history.rows}
    for _ in range(6):
        history.change()
        versions[DeltaTable(history.path).version()] = history.rows
        assert rows_of(sql, "SELECT * FROM lake.shop.t") == sorted(history.rows, key=repr)
        condition, holds = history.condition()
        wanted = [{"v0": row["v0"]} for row in history.rows if holds(row)]
        assert rows_of(sql, f"SELECT v0 FROM lake.shop.t WHERE {condition}") == sorted(wanted, key=repr), condition  # noqa: S608
        counted = rows_of(sql, f"SELECT count(*) AS n FROM lake.shop.t WHERE {condition}")  # noqa: S608
        assert counted == [{"n": len(wanted)}]

    for version, rows in versions.items():
        found = rows_of(sql, f"SELECT * FROM lake.shop.t VERSION AS OF {version}")  # noqa: S608
        columns = found[0].keys() if found else ()
        assert found == sorted(({name: row.get(name) for name in columns} for row in rows), key=repr)


EVERY_TYPE = pa.table(
    {
        "bool": pa.array([True, None]),
        "byte": pa.array([-128, None], pa.int8()),
        "int": pa.array([2**31 - 1, None], pa.int32()),
        "long": pa.array([-(2**63), None], pa.int64()),
        "float": pa.array([1.5, None], pa.float32()),
        "double": pa.array([float("inf"), None], pa.float64()),
        "decimal": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(38, 2)),
        "text": pa.array(["ü", None]),
        "bytes": pa.array([b"\x00\xff", None]),
        "date": pa.array([dt.date(1900, 1, 1), None]),
        "at": pa.array([dt.datetime(2024, 5, 14, 1, 2, 3, 456789, dt.UTC), None], pa.timestamp("us", "UTC")),
        "local": pa.array([dt.datetime(2024, 5, 14, 1, 2, 3, 456789), None], pa.timestamp("us")),  # noqa: DTZ001
        "list": pa.array([["a", None], None]),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": 1, "b": ["c"]}, None]),
    }
)


@pytest.mark.parametrize("features", FEATURES)
def test_values_of_every_type_arrive(sql: Session, lake: Path, features: dict[str, str]) -> None:
    write_deltalake(str(lake / "t"), EVERY_TYPE, configuration=features)

    found = sql.execute("SELECT * FROM lake.shop.t").to_arrow().select(EVERY_TYPE.column_names)

    assert found.to_pylist() == EVERY_TYPE.to_pylist()
    assert rows_of(sql, "SELECT struct.b[0] AS b FROM lake.shop.t WHERE `decimal` > 1") == [{"b": "c"}]


def test_a_stream_from_a_lake_is_refused_with_what_follows_its_changes(sql: Session, lake: Path) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [1]}))
    sql.execute("CREATE TABLE copy (id BIGINT)")
    sql.execute("SET 'execution.runtime-mode' = 'streaming'")
    sql.execute(f"SET 'execution.checkpointing.dir' = '{lake}/checkpoints'")

    with pytest.raises(InvalidInputError, match="CREATE MATERIALIZED TABLE follows the changes"):
        sql.execute("INSERT INTO copy SELECT id FROM lake.shop.t")
    with pytest.raises(InvalidInputError, match=r"write it once$"):
        sql.execute("INSERT INTO copy SELECT 1")


def test_rows_that_a_deletion_vector_marks_are_left_out(sql: Session, lake: Path) -> None:
    write_deltalake(
        str(lake / "t"),
        pa.table({"id": [0, 1, 2, 3]}),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    (first,) = (lake / "t" / "_delta_log").glob("*.json")
    added = next(json.loads(line)["add"] for line in first.read_text().splitlines() if '"add"' in line)
    vector = {"storageType": "i", **inline_vector([1, 3])}
    removed = {"path": added["path"], "deletionTimestamp": 0, "dataChange": True}
    commit = [{"remove": removed}, {"add": {**added, "stats": None, "deletionVector": vector}}]
    second = lake / "t" / "_delta_log" / f"{1:020}.json"
    second.write_text("\n".join(map(json.dumps, commit)), encoding="utf-8")

    assert rows_of(sql, "SELECT id FROM lake.shop.t") == [{"id": 0}, {"id": 2}]
    assert len(rows_of(sql, "SELECT id FROM lake.shop.t VERSION AS OF 0")) == 4


def test_files_without_a_matching_row_are_left_out(sql: Session, lake: Path) -> None:
    for part, first in (("a", 0), ("b", 10), (None, 20)):
        rows = {"part": [part] * 3, "id": [first, first + 1, first + 2]}
        write_deltalake(str(lake / "t"), pa.table(rows), partition_by=["part"], mode="append")

    delta = open_session_catalog("lake", {"type": "delta", "warehouse": str(lake.parent)}).lake
    assert delta is not None
    version = delta.version("shop", "t")
    schema = new_table_schema(version.schema(), options={"bucket": "1"}, time_millis=0)
    conditions = ("id = 11", "part = 'a'", "part IS NULL", "part IS NOT NULL", "id > 99", "id > 9 OR part = 'a'")
    files = {text: version.files(parse_filter(text).validated(schema)) or () for text in conditions}

    assert [len(found) for found in files.values()] == [1, 1, 1, 2, 0, 3]
    for path, _ in files["id = 11"]:
        (lake / "t" / path).unlink()
    assert rows_of(sql, "SELECT id FROM lake.shop.t WHERE id > 99") == []
    assert rows_of(sql, "SELECT id FROM lake.shop.t WHERE part IS NULL AND id < 21") == [{"id": 20}]
    assert rows_of(sql, "SELECT max(id) AS id FROM lake.shop.t WHERE part = 'a'") == [{"id": 2}]


def test_columns_that_only_a_pivot_or_an_alias_names_are_read(sql: Session, lake: Path) -> None:
    write_deltalake(str(lake / "t"), pa.table({"g": ["a", "b"], "k": ["x", "y"], "v": [1, 2]}))

    pivoted = rows_of(sql, "SELECT x, y FROM lake.shop.t PIVOT (sum(v) FOR k IN ('x', 'y'))")
    assert pivoted == [{"x": 1, "y": None}, {"x": None, "y": 2}]
    assert rows_of(sql, "SELECT c FROM lake.shop.t AS a(a, b, c)") == [{"c": 1}, {"c": 2}]


def test_times_of_spark_and_odd_names_of_directories_are_read(sql: Session, lake: Path) -> None:
    times = pa.table({"at": pa.array([dt.datetime(9999, 12, 31, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))})
    write_deltalake(str(lake / "plain"), times)
    (file,) = (lake / "plain").glob("*.parquet")
    (commit,) = (lake / "plain" / "_delta_log").glob("*.json")
    size = file.stat().st_size
    pq.write_table(times, file, use_deprecated_int96_timestamps=True)  # as Spark does by default
    commit.write_text(commit.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}'), encoding="utf-8")
    (lake / "plain").rename(lake / "p 4#1?ü")

    assert rows_of(sql, "SELECT year(at) AS y FROM lake.shop.`p 4#1?ü`") == [{"y": 9999}]
    (lake / "p 4#1?ü").rename(lake / "p%41")
    with pytest.raises(InvalidInputError, match="no directory that has a %"):
        sql.execute("SELECT * FROM lake.shop.`p%41`")


def test_the_version_of_a_time_needs_no_information_about_commits(sql: Session, lake: Path) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [1]}))
    (commit,) = (lake / "t" / "_delta_log").glob("*.json")
    lines = [line for line in commit.read_text().splitlines() if "commitInfo" not in line]
    commit.write_text("\n".join(lines), encoding="utf-8")

    assert rows_of(sql, "SELECT id FROM lake.shop.t TIMESTAMP AS OF '2999-01-01'") == [{"id": 1}]


def test_secrets_are_in_no_error_and_partitions_by_bytes_are_refused(sql: Session, lake: Path) -> None:
    refused = error_of(lambda: sql.execute("CREATE CATALOG c WITH ('type'='delta', 'warehouse'='s3://u:PW@b')"))
    write_deltalake(str(lake / "t"), pa.table({"at": [b"a"], "id": [1]}), partition_by=["at"])

    assert "password in its URL" in str(refused)
    assert "PW" not in str(refused)
    with pytest.raises(InvalidInputError, match="does not decode"):
        sql.execute("SELECT * FROM lake.shop.t")


def test_a_query_reads_one_version_however_often_it_names_the_table(sql: Session, lake: Path) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [1, 2]}))

    query = "SELECT a.id FROM lake.shop.t a JOIN lake.shop.t b ON a.id = b.id JOIN lake.shop.t c ON b.id = c.id"
    dataframe = sql.execute(query).dataframe
    write_deltalake(str(lake / "t"), pa.table({"id": [3]}), mode="append")

    assert dataframe is not None
    assert sorted(row.id for row in dataframe.collect()) == [1, 2]
    assert len(rows_of(sql, query)) == 3


def test_rows_of_a_lake_can_be_kept_in_a_table(sql: Session, lake: Path) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [1, 2], "v": ["a", "b"]}))
    sql.execute("CREATE TABLE kept (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, v FROM lake.shop.t")
    write_deltalake(str(lake / "t"), pa.table({"id": [2, 3], "v": ["c", "d"]}), mode="overwrite")
    sql.execute("MERGE INTO kept USING lake.shop.t AS s ON kept.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v")
    sql.execute("INSERT INTO kept SELECT id, v FROM lake.shop.t WHERE id = 3")

    assert rows_of(sql, "SELECT * FROM kept") == [{"id": 1, "v": "a"}, {"id": 2, "v": "c"}, {"id": 3, "v": "d"}]


def test_tables_of_another_warehouse_are_read_at_a_snapshot_a_tag_and_with_computed_columns(
    sql: Session, tmp_path: Path
) -> None:
    from storage_lib.sql import Session as NewSession

    other = open_catalog(tmp_path / "other")
    with NewSession(sql._state.spark, other) as theirs:
        theirs.execute("CREATE TABLE shop.t (id INT, twice AS (id * 2), PRIMARY KEY (id) NOT ENFORCED)")
        theirs.execute("INSERT INTO shop.t VALUES (1)")
        other.load_table("shop.t").tags.create("first")
        theirs.execute("INSERT INTO shop.t VALUES (2)")
    sql.execute("CREATE TABLE shop.t (id INT, PRIMARY KEY (id) NOT ENFORCED)")
    sql.execute("INSERT INTO shop.t VALUES (7)")
    sql.execute(f"CREATE CATALOG other WITH ('type' = 'paimon', 'warehouse' = '{tmp_path / 'other'}')")

    assert rows_of(sql, "SELECT * FROM other.shop.t") == [{"id": 1, "twice": 2}, {"id": 2, "twice": 4}]
    assert rows_of(sql, "SELECT twice FROM other.shop.t VERSION AS OF 'first'") == [{"twice": 2}]
    assert rows_of(sql, "SELECT t.id, u.id AS other FROM shop.t t CROSS JOIN other.shop.t u WHERE u.id = 1") == [
        {"id": 7, "other": 1}
    ]


REFUSED: tuple[tuple[str, type[Exception], str], ...] = (
    ("SELECT * FROM lake.shop.u", NotFoundError, "table lake.shop.u does not exist; there are t"),
    ("SELECT * FROM lake.shp.t", NotFoundError, "did you mean 'shop'"),
    ("SELECT * FROM lake.shop.`../shop/t`", NotFoundError, "does not exist"),
    ("SELECT * FROM lake.shop.t VERSION AS OF 9", InvalidInputError, "can't be read"),
    ("SELECT * FROM lake.shop.t VERSION AS OF 'tag'", InvalidInputError, "has no tags"),
    ("SELECT * FROM lake.shop.t TIMESTAMP AS OF '2001-01-01'", InvalidInputError, "its oldest one is of"),
    ("SELECT * FROM lake.shop.t /*+ OPTIONS('scan.mode' = 'latest') */", InvalidInputError, "hints are for tables"),
    ("INSERT INTO lake.shop.t VALUES (1)", NotFoundError, "which queries read"),
    ("DELETE FROM lake.shop.t", NotFoundError, "which queries read"),
    ("CREATE VIEW v AS SELECT * FROM lake.shop.t", InvalidInputError, "keep a copy of its rows"),
    ("CREATE MATERIALIZED TABLE m AS SELECT id FROM lake.shop.t VERSION AS OF 0", InvalidInputError, "follows the new"),
    ("CREATE MATERIALIZED TABLE m AS SELECT id FROM lake.shop.u", NotFoundError, "lake.shop.u does not exist"),
    ("CREATE MATERIALIZED TABLE m AS SELECT x FROM lake.shop.t", InvalidInputError, "column 39"),
    ("DESCRIBE EXTENDED lake.shop.t", InvalidInputError, "the columns only"),
    ("CREATE CATALOG lake WITH ('type' = 'delta', 'warehouse' = '/x')", AlreadyExistsError, "DROP CATALOG lake"),
    ("CREATE CATALOG dynamic_tables WITH ('type' = 'delta', 'warehouse' = '/x')", AlreadyExistsError, "another name"),
    (
        "CREATE CATALOG l WITH ('type' = 'hudi', 'warehouse' = '/x')",
        InvalidInputError,
        "the types are delta, iceberg, paimon",
    ),
    ("CREATE CATALOG l WITH ('warehouse' = '/x')", InvalidInputError, "has no option 'type'"),
    ("CREATE CATALOG l WITH ('type' = 'delta')", InvalidInputError, "has no option 'warehouse'"),
    ("CREATE CATALOG l WITH ('type' = 'delta', 'warehouse' = '/x', 'key' = '1')", InvalidInputError, "no option 'key'"),
    ("CREATE CATALOG l WITH ('type' = 'delta', 'warehouse' = 'hdfs://n/x')", InvalidInputError, "object stores"),
    ("DROP CATALOG lak", NotFoundError, "did you mean 'lake'"),
)


def test_what_cannot_be_read_is_refused_with_the_reason(sql: Session, lake: Path) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [1]}))
    answers = {text: error_of(lambda text=text: sql.execute(text)) for text, _, _ in REFUSED}  # type: ignore[misc]

    wrong = {
        text: answers[text]
        for text, kind, words in REFUSED
        if not isinstance(answers[text], kind) or words not in str(answers[text])
    }
    assert wrong == {}


def error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001  the test compares it
        return error
    return None


def test_catalogs_are_listed_with_their_databases_tables_and_columns(sql: Session, lake: Path, warehouse: str) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [1], "v": ["a"]}))
    (lake.parent / "old.db" / "u").mkdir(parents=True)
    write_deltalake(str(lake.parent / "old.db" / "u"), pa.table({"id": [2]}))

    listed = sql.execute("SHOW CATALOGS").to_arrow().to_pylist()
    assert [tuple(each.values()) for each in listed] == [
        ("dynamic_tables", "dynamic tables", warehouse),
        ("lake", "delta", str(lake.parent)),
    ]
    assert sql.execute("SHOW DATABASES IN lake").to_arrow().to_pydict() == {"database": ["old", "shop"]}
    assert sql.execute("SHOW TABLES IN lake.old").to_arrow().to_pydict()["table"] == ["u"]
    described = sql.execute("DESCRIBE lake.shop.t").to_arrow().to_pydict()
    assert (described["name"], described["type"]) == (["id", "v"], ["BIGINT", "STRING"])
    sql.execute("CREATE CATALOG IF NOT EXISTS lake WITH ('type' = 'delta', 'warehouse' = '/elsewhere')")
    assert rows_of(sql, "SELECT * FROM lake.old.u") == [{"id": 2}]
    sql.execute("DROP CATALOG lake")
    sql.execute("DROP CATALOG IF EXISTS lake")
    with pytest.raises(NotFoundError, match="unknown catalog 'lake'"):
        sql.execute("SELECT * FROM lake.old.u")
