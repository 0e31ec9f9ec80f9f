"""Random lives of tables with accumulators, from their first row: refreshes, crashes between their commits, rivals.

    python -m tests.spark.materialized.accumulated_lives --seed-from 0 --seed-to 2000

Spark types each query once; DuckDB builds the states, as changes of empty tables, and adds the changes, so that a life
takes few seconds. After each refresh the table is compared with the answer over the rows of its sources. Spark builds a
state where the history of a source was changed, and those of global aggregates.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, ClassVar
from unittest.mock import patch

from storage_lib import open_catalog
from storage_lib.duckdb import duckdb_engine
from storage_lib.duckdb.duckdb_engine import DuckDbEngine
from storage_lib.materialized.accumulators.accumulated_state import NamedState, new_state
from storage_lib.materialized.commit.refresh_commit import commit_difference
from storage_lib.materialized.definition.create_materialized import create_materialized
from storage_lib.materialized.refresh_table import refresh_table
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.schema.options.materialized_table import RefreshMode
from storage_lib.spark.engine.spark_engine import SparkEngine
from tests.materialized.algebra.lives_on_spark import _changes, _schema
from tests.materialized.algebra.random_queries import TABLES
from tests.materialized.algebra.small_rows import Row, SmallRows
from tests.materialized.algebra.test_accumulators import random_query
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.engine import AnswerColumn, RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.plan.refresh_result import RefreshResult
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.filter.predicate import Predicate

QUERIES_COUNT = 24
_OPTIONS = {"accumulators.rows-min": "0", "bucket": "1"}


class CrashError(Exception):
    """The process ends between the two commits of a refresh."""


class StateBuilder(DuckDbEngine):
    """DuckDB, which also builds the first state of a table, as the change from empty sources."""

    def write_answer(
        self, run: RefreshRun, accumulated: AccumulatedPlan | None, where: Predicate | None = None
    ) -> Snapshot | None:
        """Build the state of a table without rows; leave everything else to Spark."""
        # A global aggregate has a row also over no rows, to which nothing could be added.
        is_other = accumulated is None or where is not None or run.plan.based_on
        if is_other or accumulated is None or accumulated.query.accumulators.groups.is_global:
            return DuckDbEngine.write_answer(self, run, accumulated, where)
        changed = {
            name: source.delta(needed_columns(run.bound.compiled, name, source), 0, run.plan.after[name])
            for name, source in run.bound.sources.items()
            if run.plan.after[name]
        }
        empty = replace(run, plan=replace(run.plan, before=dict.fromkeys(run.bound.sources, 0)))
        state = NamedState(new_state(run.table, accumulated.query), 0)
        return self._add_changes(empty, changed, replace(accumulated, state=state))


class TypesOnce(SparkEngine):
    """Spark, which types the answer of each query once for all lives."""

    known: ClassVar[dict[str, Sequence[AnswerColumn]]] = {}

    def answer_columns(self, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:
        """Return the columns of an answer."""
        text = bound.compiled.tables.query
        if text not in self.known:
            self.known[text] = SparkEngine.answer_columns(self, name, bound)
        return self.known[text]


@dataclass(kw_only=True)
class AccumulatedLife:
    """Three changing tables and two queries over them, kept by accumulators; ``seed`` determines all."""

    spark: SparkSession
    directory: str
    seed: int
    met: Counter[str] = field(default_factory=Counter, init=False)
    _rng: Random = field(init=False)
    _rows: SmallRows = field(init=False)
    _catalog: Catalog = field(init=False)
    _contents: dict[str, dict[Row, Row]] = field(default_factory=dict, init=False)
    _kept: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._rng = Random(self.seed)  # noqa: S311  chance, not secrets
        self._rows = SmallRows(self._rng)
        self._catalog = open_catalog(f"{self.directory}/warehouse")
        for each in TABLES:
            self._catalog.create_table(each.name, _schema(each), primary_key=list(each.primary_key))
            self._contents[each.name] = {}
        for number in range(2):
            # Few queries for all lives, because Spark has to type each of them.
            query = random_query(Random(self._rng.randrange(QUERIES_COUNT)))  # noqa: S311  likewise
            self._create(f"shop.kept_{number}", query)

    def run(self, steps: int) -> str | None:
        """Live for some steps; return the first difference, None without one."""
        for step in range(steps):
            self._change(may_rest=step > 0)
            for name in self._kept:
                if self._rng.random() < 0.15:
                    continue  # the next refresh has more to do
                problem = self._refreshed(name)
                if problem is not None:
                    return f"seed {self.seed}, step {step}, {name}: {problem}"
        return None

    def _create(self, name: str, query: str) -> None:
        create_materialized(
            lambda: TypesOnce(self.spark),
            self._catalog,
            name,
            query,
            primary_key=None,
            partition_keys=(),
            freshness=None,
            refresh_mode=RefreshMode.AUTO,
            options=_OPTIONS,
            comment=None,
            if_not_exists=False,
            database=None,
        )
        self._kept.append(name)

    def _change(self, *, may_rest: bool) -> None:
        for each in TABLES:
            rows, plain = self._contents[each.name], each.name.partition(".")[2]
            if may_rest and self._rng.random() < 0.3:
                continue
            before = dict(rows)
            for _ in range(self._rng.choice([1, 2, 5, 9, 30])):
                if rows and self._rng.random() < self._rng.choice([0.3, 0.9]):
                    del rows[self._rng.choice(list(rows))]
                else:
                    key, row = self._rows.keyed(plain)
                    rows[key] = row
            added = [row for key, row in rows.items() if before.get(key) != row]
            removed = [row for key, row in before.items() if key not in rows]
            if not added and not removed:
                continue
            table = self._catalog.load_table(each.name)
            table.append(_changes(each, added, removed))
            if self._rng.random() < 0.1:
                table.compact()
                self.met["a source is compacted"] += 1
            if self._rng.random() < 0.02 and (table.refresh().inspect.latest_snapshot_id() or 0) > 2:
                newest = table.refresh()
                newest.rollback_to(snapshot_id=(newest.inspect.latest_snapshot_id() or 0) - 1)
                self.met["a source is rolled back"] += 1
                return self._follow(each.name)
        return None

    def _follow(self, name: str) -> None:
        """Read what a source holds after its history was changed."""
        each = next(each for each in TABLES if each.name == name)
        places = [place for place, (column, _) in enumerate(each.columns) if column in each.primary_key]
        rows = [tuple(row.values()) for row in self._catalog.load_table(name).to_arrow().to_pylist()]
        keys = [tuple(row[place] for place in places) if places else (-1 - at,) for at, row in enumerate(rows)]
        self._contents[name] = dict(zip(keys, rows, strict=True))

    def _refreshed(self, name: str) -> str | None:
        chance = self._rng.random()
        if chance < 0.12:
            with self._crashing():
                try:
                    self._refresh(name)
                except CrashError:
                    self.met["crash between the commits"] += 1
        elif chance < 0.24:
            with self._overtaken(name):
                self._refresh(name)
            self.met["another refresh was faster"] += 1
        elif chance < 0.3:
            self._catalog.load_table(name).compact()
        elif chance < 0.34:
            self._catalog.load_table(name).maintenance.expire_snapshots(retain_last=1)
            self.met["snapshots expire"] += 1
        result = self._refresh(name)
        self.met[f"{result.mode} by {result.engine}"] += 1
        table = self._catalog.load_table(name)
        found, expected = stored_bag(table), expected_bag(self._catalog, table)
        if found != expected:
            return f"missing {expected - found}, surplus {found - expected}, {result}"
        return None

    def _refresh(self, name: str) -> RefreshResult:
        return refresh_table([StateBuilder(), TypesOnce(self.spark)], self._catalog.load_table(name))

    @contextmanager
    def _crashing(self) -> Iterator[None]:
        def crash(*_: object, **__: object) -> None:
            raise CrashError

        with patch.object(duckdb_engine, "commit_difference", crash):
            yield

    @contextmanager
    def _overtaken(self, name: str) -> Iterator[None]:
        """Let another process refresh the table between the two commits of the refresh in the body, once."""
        commit: Callable[..., Snapshot | None] = commit_difference
        waiting = [name]

        def overtaken(*given: object, **named: object) -> Snapshot | None:
            if waiting:
                self._refresh(waiting.pop())
            return commit(*given, **named)

        with patch.object(duckdb_engine, "commit_difference", overtaken):
            yield


def run_life(spark: SparkSession, seed: int, steps: int) -> tuple[str | None, Counter[str]]:
    """Run one life in a directory of its own; return the first difference, and what the life has met."""
    directory = tempfile.mkdtemp(prefix="accumulated-")
    try:
        life = AccumulatedLife(spark=spark, directory=directory, seed=seed)
        return life.run(steps), life.met
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main(session: Callable[[], SparkSession]) -> int:
    """Run the lives of some seeds; return 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed-from", type=int, default=0)
    parser.add_argument("--seed-to", type=int, default=100)
    parser.add_argument("--steps", type=int, default=8)
    given = parser.parse_args()
    spark, met, wrong = session(), Counter[str](), 0
    for seed in range(given.seed_from, given.seed_to):
        problem, found = run_life(spark, seed, given.steps)
        met += found
        wrong += problem is not None
        if problem is not None or seed % 50 == 0:
            print(problem or f"seed {seed}: {dict(met)}", flush=True)
    print(f"{given.seed_to - given.seed_from} lives, {wrong} wrong: {dict(met)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    from storage_lib.spark import session as spark_session

    sys.exit(main(lambda: spark_session("lives", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})))
