"""UPDATE, DELETE and MERGE while another writer commits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn, CommitConflictError, open_catalog
from storage_lib.spark import write as spark_write

if TYPE_CHECKING:
    from storage_lib.sql.session import Session
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark
KEYED = "CREATE TABLE shop.t (id INT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('log.system' = 'none')"
KEYLESS = "CREATE TABLE shop.t (id INT, n INT) WITH ('log.system' = 'none')"
MERGE_ONE = (
    "MERGE INTO shop.t AS t USING (SELECT 1 AS id, 5 AS n) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n"
)


def rows(*pairs: tuple[int, int], kind: str = "+I") -> pa.Table:
    ids, numbers = zip(*pairs, strict=True)
    columns = {"id": pa.array(ids, pa.int32()), "n": pa.array(numbers, pa.int32()), "_row_kind": [kind] * len(pairs)}
    return pa.table(columns)


def content(table: DynamicTable) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize("create", [KEYED, KEYLESS])
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE shop.t SET n = n + 1", [(1, 11), (2, 3)]),
        ("DELETE FROM shop.t WHERE n < 5", [(1, 10)]),
        (
            (
                "MERGE INTO shop.t AS t USING (SELECT 1 AS id, 5 AS n UNION ALL SELECT 3, 3) AS s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
            ),
            [(1, 15), (2, 2), (3, 3)],
        ),
    ],
)
def test_a_commit_that_comes_between_is_not_taken_back(
    sql: Session, warehouse: str, monkeypatch: pytest.MonkeyPatch, create: str, statement: str, expected: object
) -> None:
    sql.execute("CREATE DATABASE shop")
    sql.execute(create)
    table = open_catalog(warehouse).load_table("shop.t")
    table.append(rows((1, 0), (2, 2)))
    real, between = spark_write, [rows((1, 0), kind="-U"), rows((1, 10), kind="+U")]

    def write(*arguments: Any, **named: Any) -> Any:
        if between:
            table.append(pa.concat_tables(between))
            between.clear()
        return real(*arguments, **named)

    monkeypatch.setattr("storage_lib.sql.run.changed_rows.write", write)
    sql.execute(statement)

    assert content(table) == expected
    assert table.inspect.lease_holder() is None


@pytest.mark.parametrize(
    ("statement", "before"),
    [
        (MERGE_ONE, "run_changes.commit_changed_rows"),
        (MERGE_ONE, "changed_rows.write"),
        ("UPDATE shop.t SET n = n + 1", "changed_rows.write"),
    ],
)
def test_a_statement_that_began_before_a_column_was_added_keeps_its_values(
    sql: Session, warehouse: str, monkeypatch: pytest.MonkeyPatch, statement: str, before: str
) -> None:
    sql.execute("CREATE DATABASE shop")
    sql.execute(KEYED)
    table = open_catalog(warehouse).load_table("shop.t")
    table.append(rows((1, 0)))
    module, _, name = before.rpartition(".")
    place = f"storage_lib.sql.run.{module}"
    real, calls = getattr(import_module(place), name), [0]

    def called(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == 1:
            new = table.alter(AddColumn("x", "INT"))
            new.append(rows((2, 2)).append_column("x", pa.array([7], pa.int32())))
            new.update("id = 1", {"x": 8})
        return real(*arguments, **named)

    monkeypatch.setattr(f"{place}.{name}", called)
    with pytest.raises(CommitConflictError, match="run it again"):
        sql.execute(statement)

    assert sorted(row["x"] for row in table.refresh().to_arrow().to_pylist()) == [7, 8]
    assert table.inspect.lease_holder() is None


def test_a_statement_that_fails_inside_its_lease_releases_it(
    sql: Session, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql.execute("CREATE DATABASE shop")
    sql.execute(KEYED)
    table = open_catalog(warehouse).load_table("shop.t")
    table.append(rows((1, 1)))
    real, calls = spark_write, [0]

    def write(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == 1:
            table.append(rows((1, 10)))
        return real(*arguments, **named)

    monkeypatch.setattr("storage_lib.sql.run.changed_rows.write", write)
    with pytest.raises(Exception, match="too large"):
        sql.execute("UPDATE shop.t SET n = CASE WHEN n < 5 THEN 1 ELSE CAST(raise_error('too large') AS INT) END")

    assert calls[0] == 2
    assert content(table) == [(1, 10)]
    assert table.inspect.lease_holder() is None


def test_a_merged_row_that_takes_the_key_of_a_deleted_one_stays_whatever_the_exchange_does(
    sql: Session, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql.execute("CREATE DATABASE shop")
    sql.execute(KEYED)
    table = open_catalog(warehouse).load_table("shop.t")
    table.append(rows((1, 1), (2, 2)))
    # Insertions before deletions, as an exchange may deliver them.
    monkeypatch.setattr(
        "storage_lib.spark.verbs.dataframe_verbs.by_partition_and_bucket",
        lambda df, _: df.coalesce(1).sort("_row_kind"),
    )

    sql.execute(
        "MERGE INTO shop.t AS t USING (SELECT 1 AS id, 7 AS n UNION ALL SELECT 2, 2) AS s ON t.n = s.n "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )

    assert content(table) == [(1, 7), (2, 2)]
