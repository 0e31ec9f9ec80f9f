"""Run random statements in a SQL session on Spark and on a DuckDB table, and compare the two tables.

python -m tests.differential.verbs_on_spark --seed-from 0 --seed-to 100
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import duckdb

if __name__ == "__main__":
    # As in pytest's configuration: the modules that start the local servers are not installed.
    sys.path.append(str(Path(__file__).parents[2] / "docker" / "local"))

from storage_lib import open_catalog
from tests.differential.verb_cases import NAMES, VERB_TABLES, Statement, VerbRow, VerbTable, statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VerbBag = Counter[VerbRow]
_STATEMENTS = 6


def difference_after_verbs(
    spark: SparkSession, directory: Path, table: VerbTable, seed: int, *, count: int = _STATEMENTS
) -> str | None:
    """Run ``count`` random statements; return the first difference, or None."""
    from storage_lib.sql import Session

    rng = Random(f"{table.name}{seed}")  # noqa: S311  chance, not secrets
    catalog = open_catalog(str(directory / "warehouse"))
    database = f"verbs_{VERB_TABLES.index(table)}_{seed}"
    catalog.create_database(database)
    twin = _Twin(table)
    said: list[str] = []
    try:
        with Session(spark, catalog, database=database) as session:
            session.execute(table.create)
            for statement in statements(rng, table, count):
                said.append(statement.sql)
                session.execute(statement.sql)
                ours = catalog.load_table(f"{database}.t")
                if rng.random() < 0.2 and not table.is_append_only:
                    ours.compact(full=rng.random() < 0.5)
                rows = ours.to_arrow()
                found: VerbBag = Counter(zip(*(rows[name].to_pylist() for name in NAMES), strict=True))
                wrong = twin.difference(statement, found)
                if wrong is not None:
                    lines = ";\n  ".join(said)
                    return f"{table.name}, seed {seed}, after\n  {table.create};\n  {lines}\n{wrong}"
    finally:
        catalog.drop_database(database, cascade=True)
    return None


class _Twin:
    """DuckDB's table, without a key, so that a statement may remove a row and insert its key again."""

    def __init__(self, table: VerbTable) -> None:
        self._table = table
        self._db = duckdb.connect(config={"threads": 1})
        self._db.execute("CREATE TABLE t (k BIGINT, p VARCHAR, n BIGINT, s VARCHAR)")

    def difference(self, statement: Statement, found: VerbBag) -> str | None:
        """Run a statement on the model too; return the difference of ``found`` from it, or None."""
        before = self._rows()
        for sql in statement.in_duckdb:
            self._db.execute(sql)
        after = self._rows()
        if not self._table.key or not statement.upserts:
            return None if after == found else _said(after, found)
        expected = self._candidates(before, after)
        there = {self._key(row): row for row in found}
        is_right = found.total() == len(there) and there.keys() == expected.keys()
        if not is_right or any(row not in expected[key] for key, row in there.items()):
            return _said(after, found)
        self._hold(found)
        return None

    def _candidates(self, before: VerbBag, after: VerbBag) -> dict[VerbRow, set[VerbRow]]:
        """Return the permitted rows by key: an inserted row replaces the existing one.

        If a statement updates a row and inserts another one with its key, either of them may remain.
        """
        found: dict[VerbRow, list[VerbRow]] = {}
        for row in after.elements():
            found.setdefault(self._key(row), []).append(row)
        return {key: set(rows) - (set(before) if len(set(rows)) > 1 else set()) for key, rows in found.items()}

    def _key(self, row: VerbRow) -> VerbRow:
        return tuple(row[NAMES.index(name)] for name in self._table.key)

    def _rows(self) -> VerbBag:
        return Counter(self._db.execute("SELECT k, p, n, s FROM t").fetchall())

    def _hold(self, rows: VerbBag) -> None:
        self._db.execute("DELETE FROM t")
        self._db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", list(rows.elements())) if rows else None


def _said(expected: VerbBag, found: VerbBag) -> str:
    missing, wrong = expected - found, found - expected
    return f"missing {sorted(missing.elements(), key=str)}\ntoo much {sorted(wrong.elements(), key=str)}"


def main(arguments: list[str] | None = None) -> int:
    """Run many seeds on a separate Spark and print all differences."""
    from quick_spark import quick_spark
    from storage_lib.spark import session
    from tests.support.memory_disk import memory_disk
    from tests.support.plugins.spark_sessions import SPARK_CONF

    parser = argparse.ArgumentParser(prog="tests.differential.verbs_on_spark", description=__doc__)
    parser.add_argument("--seed-from", type=int, default=0)
    parser.add_argument("--seed-to", type=int, default=0, help="the first seed that is not run")
    said = parser.parse_args(arguments)
    os.environ.update(quick_spark())
    wrong = 0
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name:
        conf = {**SPARK_CONF, "spark.sql.warehouse.dir": f"{name}/spark-warehouse"}
        spark = session("verbs", master="local[2]", conf=conf)
        spark.sparkContext.setLogLevel("OFF")
        try:
            for seed in range(said.seed_from, said.seed_to):
                for table in VERB_TABLES:
                    found = difference_after_verbs(spark, Path(name), table, seed)
                    wrong += found is not None
                    if found is not None:
                        print(f"=== {found}\n", flush=True)
                print(f"seed {seed}: {wrong} wrong so far", flush=True)
        finally:
            spark.stop()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
