"""Random queries over random histories on Spark: as materialized tables, and as streaming INSERTs.

    python -m tests.materialized.algebra.lives_on_spark --seed-from 0 --seed-to 50

After each change of the sources, each table and each stream's target has to equal the answer of the query as it is
written, computed by Spark over the newest rows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import sqlglot
from sqlglot import exp

from storage_lib import open_catalog
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.spark import create_materialized_table, read, refresh
from storage_lib.spark.engine import computed_once
from storage_lib.spark.insert_stream.insert_stream import insert_stream
from tests.materialized.algebra.maintained_answers import rounded
from tests.materialized.algebra.random_queries import TABLES, RandomQueries
from tests.materialized.algebra.small_rows import Row, SmallRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.materialized.algebra import SourceTable
    from storage_lib.table.dynamic_table import DynamicTable

Bag = Counter[tuple[object, ...]]

_ARROW = {"INT": pa.int32(), "STRING": pa.string()}


@dataclass(kw_only=True)
class LifeOnSpark:
    """Three changing tables and some queries over them; ``seed`` determines both."""

    spark: SparkSession
    directory: str
    seed: int
    queries_count: int = 4
    catalog: Catalog = field(init=False)
    compared: int = field(default=0, init=False)
    modes: Counter[str] = field(default_factory=Counter, init=False)
    _rng: Random = field(init=False)
    _rows: SmallRows = field(init=False)
    _contents: dict[str, dict[Row, Row]] = field(default_factory=dict, init=False)
    _queries: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._rng = Random(self.seed)  # noqa: S311  chance, not secrets
        self._rows = SmallRows(self._rng)
        self.catalog = open_catalog(f"{self.directory}/warehouse")
        for each in TABLES:
            keys = list(each.primary_key)
            table = self.catalog.create_table(each.name, _schema(each), primary_key=keys)
            rows = self._rows.first(each.name.partition(".")[2])
            self._contents[each.name] = rows
            table.append(_changes(each, list(rows.values()), []))
        while len(self._queries) < self.queries_count:
            self._create(f"shop.q{len(self._queries)}", RandomQueries(self._rng).query())

    def run(self, steps: int) -> str | None:
        """Change the sources and compare everything, ``steps`` times; return the first difference.

        In every third life, rows that several statements read stay in Spark.
        """
        rows_here = computed_once.ROWS_HERE_MAX if self.seed % 3 else 0
        with patch.object(computed_once, "ROWS_HERE_MAX", rows_here):
            return self._run(steps)

    def _run(self, steps: int) -> str | None:
        for step in range(steps):
            if step:
                self._change()
            for name, query in self._queries.items():
                try:
                    problem = self._difference(name, query)
                except Exception as error:
                    error.add_note(query)
                    raise
                if problem is not None:
                    return f"seed {self.seed}, step {step}: {problem}\n{query}"
        return None

    def _create(self, name: str, query: str) -> None:
        options = {"accumulators.rows-min": self._rng.choice(["0", "1000000"])}
        if self.seed % 2:
            options["refresh.in-process-size-max"] = self._rng.choice(["0 b", "512 mb"])
        table = create_materialized_table(self.catalog, name, query, spark=self.spark, options=options)
        columns = {each.name: each.type for each in table.arrow_schema}
        schema = pa.schema([pa.field(column, kind) for column, kind in columns.items()])
        self.catalog.create_table(f"{name}_stream", schema)
        self._queries[name] = query

    def _change(self) -> None:
        for each in TABLES:
            rows, plain = self._contents[each.name], each.name.partition(".")[2]
            if self._rng.random() < 0.3:
                continue
            added: dict[Row, Row] = {}
            removed: dict[Row, Row] = {}
            for _ in range(self._rng.choice([1, 2, 5, 9])):
                if rows and self._rng.random() < 0.4:
                    key = self._rng.choice(list(rows))
                    removed.setdefault(key, rows.pop(key))
                    added.pop(key, None)
                else:
                    key, row = self._rows.keyed(plain)
                    rows[key] = added[key] = row
                    removed.pop(key, None)
            if added or removed:
                self._table(each.name).append(_changes(each, list(added.values()), list(removed.values())))
        if self._rng.random() < 0.2:
            self._table(self._rng.choice(TABLES).name).compact()

    def _difference(self, name: str, query: str) -> str | None:
        expected = self._answer(query)
        result = refresh(self.spark, self._table(name))
        self.modes[f"{result.mode} by {result.engine}"] += 1
        self._stream(name, query)
        for of, table in (("table", name), ("stream", f"{name}_stream")):
            found = _bag(self._table(table).to_arrow().to_pylist())
            self.compared += 1
            if found != expected:
                return f"{of}: missing {expected - found}, surplus {found - expected}, {result}"
        return None

    def _stream(self, name: str, query: str) -> None:
        target = self._table(f"{name}_stream")
        definition = self._table(name).definition
        assert definition is not None
        kept = MaterializedTableDefinition(query=query, database="shop", sources=definition.sources)
        stream = insert_stream(
            self.spark,
            target,
            kept,
            target.address,
            lambda rows: rows.toDF(*target.arrow_schema.names, "_row_kind"),
            checkpoint_location=f"{self.directory}/checkpoints/{name}",
            available_now=True,
        )
        stream.awaitTermination(300)

    def _answer(self, query: str) -> Bag:
        tree = sqlglot.parse_one(query, dialect="spark")
        for each in TABLES:
            view = f"newest_{each.name.partition('.')[2]}"
            read(self.spark, self._table(each.name)).createOrReplaceTempView(view)
            for table in list(tree.find_all(exp.Table)):
                if table.name == each.name.partition(".")[2]:
                    table.replace(exp.alias_(exp.to_table(view), table.alias_or_name, table=True))
        rows = self.spark.sql(tree.sql("spark")).toArrow()
        return _bag(rows.to_pylist())

    def _table(self, name: str) -> DynamicTable:
        return self.catalog.load_table(name)


def _schema(table: SourceTable) -> pa.Schema:
    fields = []
    for name, kind in table.columns:
        bare = kind.removesuffix(" NOT NULL")
        fields.append(pa.field(name, _ARROW[bare], nullable=bare == kind))
    return pa.schema(fields)


def _changes(table: SourceTable, added: list[Row], removed: list[Row]) -> pa.Table:
    schema = _schema(table)
    rows = [*removed, *added]
    columns = [pa.array([row[place] for row in rows], each.type) for place, each in enumerate(schema)]
    kinds = pa.array(["-D"] * len(removed) + ["+I"] * len(added))
    return pa.Table.from_arrays([*columns, kinds], names=[*schema.names, "_row_kind"])


def _bag(rows: list[dict[str, Any]]) -> Bag:
    return Counter(tuple(map(rounded, row.values())) for row in rows)


def main(session: Callable[[], SparkSession]) -> int:
    """Run the lives of some seeds; return 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed-from", type=int, default=0)
    parser.add_argument("--seed-to", type=int, default=50)
    parser.add_argument("--steps", type=int, default=4)
    given = parser.parse_args()
    spark = session()
    compared, modes, wrong = 0, Counter[str](), 0
    for seed in range(given.seed_from, given.seed_to):
        directory = tempfile.mkdtemp(prefix="lives-")
        life = None
        try:
            life = LifeOnSpark(spark=spark, directory=directory, seed=seed)
            problem = life.run(given.steps)
        except Exception as error:  # noqa: BLE001  the other seeds are to run as well
            notes = "\n".join(getattr(error, "__notes__", ()))
            problem = f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}\n{notes}"
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if life is not None:
            compared += life.compared
            modes += life.modes
        if problem is not None:
            wrong += 1
        print(problem or f"seed {seed}: {compared} answers compared, {dict(modes)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    from storage_lib.spark import session as spark_session

    sys.exit(main(lambda: spark_session("lives", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})))
