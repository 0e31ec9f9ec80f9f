"""Tables with TARGET_LAG = DOWNSTREAM are refreshed when tables that read them are, before these, and else never."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

from storage_lib import open_catalog
from storage_lib.duckdb.small_refresh import small_refresh
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.environment import SystemClock, system_environment
from storage_lib.materialized.definition.alter_materialized import resume, set_freshness, suspend
from storage_lib.materialized.plan.refresh_result import RefreshResult, RefreshWork
from storage_lib.materialized.refresh_table import idle_refresh
from storage_lib.materialized.service.fresh_tables import FreshTables
from storage_lib.schema.options.materialized_table import (
    Freshness,
    MaterializedTableDefinition,
    TargetLag,
    parse_freshness,
)
from tests.support.moved_clock import MovedClock

if TYPE_CHECKING:
    from pathlib import Path

    from storage_lib import Catalog, DynamicTable

UTC = (("spark.sql.session.timeZone", "UTC"),)
Rows = dict[int, int]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Return a catalog with table ``s.base`` of two rows."""
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    create_base(catalog, "s.base").upsert([{"id": 1, "v": 10}, {"id": 2, "v": 20}])
    return catalog


def create_base(catalog: Catalog, name: str) -> DynamicTable:
    return catalog.create_table(name, {"id": "BIGINT NOT NULL", "v": "BIGINT"}, primary_key=["id"])


def define(catalog: Catalog, name: str, *sources: str, freshness: Freshness | str | None = None) -> DynamicTable:
    """Create a table of the largest ``v`` of each ``id`` in its sources, one more than there, without rows yet."""
    union = " UNION ALL ".join(f"SELECT id, v + 1 AS v FROM {source}" for source in sources)
    definition = MaterializedTableDefinition(
        query=f"SELECT id, max(v) AS v FROM ({union}) GROUP BY id",
        database="s",
        sources=tuple(sorted(sources)),
        freshness=parse_freshness(freshness),
        settings=UTC,
    )
    columns = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
    return catalog.create_table(name, columns, primary_key=["id"], options=definition.to_options())


def refreshed(table: DynamicTable) -> RefreshResult:
    result = small_refresh(table)
    assert result is not None
    return result


def rows_of(catalog: Catalog, name: str) -> Rows:
    return {row["id"]: row["v"] for row in catalog.load_table(name).to_arrow().to_pylist()}


def scheduler(
    catalog: Catalog, *names: str, minutes: float = 0
) -> tuple[FreshTables, list[tuple[str, RefreshResult | Exception]]]:
    reports: list[tuple[str, RefreshResult | Exception]] = []
    clock = MovedClock(minutes * 60)
    tables = FreshTables(refreshed, catalog, clock, lambda *each: reports.append(each), names or None)
    return tables, reports


def test_a_chain_is_refreshed_with_its_last_table_and_only_with_it(catalog: Catalog) -> None:
    define(catalog, "s.a", "s.base", freshness="downstream")
    define(catalog, "s.b", "s.a", freshness="downstream")
    define(catalog, "s.c", "s.b", freshness="PT10M")
    tables, reports = scheduler(catalog)

    assert tables.run_once() == 3
    assert [name for name, _ in reports] == ["s.a", "s.b", "s.c"]
    assert rows_of(catalog, "s.c") == {1: 13, 2: 23}

    catalog.load_table("s.base").upsert([{"id": 1, "v": 50}])
    assert tables.run_once() == 0
    assert rows_of(catalog, "s.a") == {1: 11, 2: 21}
    later, _ = scheduler(catalog, minutes=6)
    assert later.run_once() == 3
    assert rows_of(catalog, "s.c") == {1: 53, 2: 23}


def test_a_refresh_on_request_refreshes_what_it_reads_first_and_says_so(catalog: Catalog) -> None:
    define(catalog, "s.a", "s.base", freshness="downstream")
    last = define(catalog, "s.b", "s.a")

    first = refreshed(last)
    again = refreshed(last)

    assert {name: (each.mode, each.snapshot_id) for name, each in first.refreshed_first.items()} == {
        "s.a": (RefreshWork.FULL, 1)
    }
    assert (again.mode, again.refreshed_first) == (RefreshWork.NONE, {})
    catalog.load_table("s.base").upsert([{"id": 3, "v": 1}])
    assert idle_refresh(last) is None
    assert refreshed(last).rows_read == {"s.a": 1}
    assert idle_refresh(last) is not None


def test_tables_of_one_source_that_a_table_joins_are_refreshed_to_the_same_snapshot(catalog: Catalog) -> None:
    define(catalog, "s.a", "s.base", freshness="downstream")
    define(catalog, "s.b", "s.base", "s.a", freshness="downstream")
    last = define(catalog, "s.c", "s.a", "s.b", "s.base")

    assert [*refreshed(last).refreshed_first] == ["s.a", "s.b"]
    assert rows_of(catalog, "s.c") == {1: 13, 2: 23}
    catalog.load_table("s.base").upsert([{"id": 1, "v": 50}])
    assert [*refreshed(last).refreshed_first] == ["s.a", "s.b"]
    assert rows_of(catalog, "s.c") == {1: 53, 2: 23}


def test_a_suspended_table_is_left_as_it_is(catalog: Catalog) -> None:
    middle = define(catalog, "s.a", "s.base", freshness="downstream")
    last = define(catalog, "s.b", "s.a")
    refreshed(last)
    suspend(middle)
    catalog.load_table("s.base").upsert([{"id": 1, "v": 50}])

    assert refreshed(last).mode is RefreshWork.NONE
    resume(catalog.load_table("s.a"))
    assert refreshed(last).mode is RefreshWork.INCREMENTAL


def test_a_table_that_nothing_reads_is_refused(catalog: Catalog) -> None:
    unread = define(catalog, "s.a", "s.base")

    with pytest.raises(InvalidInputError, match=r"s\.a: TARGET_LAG = DOWNSTREAM, but no materialized table reads it"):
        set_freshness(unread, "DOWNSTREAM")
    define(catalog, "s.b", "s.a")
    definition = set_freshness(unread, "DOWNSTREAM").definition
    assert definition is not None
    assert definition.freshness is TargetLag.DOWNSTREAM


def test_the_scheduler_reports_a_table_that_nothing_reads_once(catalog: Catalog) -> None:
    define(catalog, "s.a", "s.base", freshness="downstream")
    tables, reports = scheduler(catalog)

    assert (tables.run_once(), tables.run_once()) == (0, 0)
    assert [(name, type(error)) for name, error in reports] == [("s.a", InvalidInputError)]
    define(catalog, "s.b", "s.a")
    assert tables.run_once() == 2

    named, _ = scheduler(catalog, "s.a")
    with pytest.raises(InvalidInputError, match="no materialized table reads it"):
        named.run_once()
    both, _ = scheduler(catalog, "s.a", "s.b")
    assert both.run_once() == 0


def test_a_circle_and_a_dropped_source_are_refused(catalog: Catalog) -> None:
    define(catalog, "s.a", "s.b", freshness="downstream")
    last = define(catalog, "s.b", "s.a", freshness="downstream")

    with pytest.raises(InvalidInputError, match="read each other in a circle"):
        refreshed(last)
    catalog.drop_table("s.a")
    define(catalog, "s.a", "s.lost", freshness="downstream")
    with pytest.raises(NotFoundError, match="lost"):
        refreshed(last)


@dataclass
class Model:
    """The tables as they should be: an answer that knows no snapshots.

    ``at`` is the minute of the oldest commit to a table that nobody has read yet, by reader and source.
    """

    rows: dict[str, Rows]
    reads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lags: dict[str, int | str | None] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    at: dict[tuple[str, str], int] = field(default_factory=dict)

    def drawn_sources(self, draw: random.Random, among: list[str]) -> tuple[str, ...]:
        """Draw one or two tables that derive from different ones: else a refresh waits for snapshots that agree."""
        first, second = draw.sample(among, 2)
        is_apart = not self.bases_of(first) & self.bases_of(second)
        return tuple(sorted((first, second))) if is_apart and draw.random() < 0.7 else (first,)

    def bases_of(self, name: str) -> set[str]:
        """Return the tables that somebody writes, from which a table derives."""
        return {base for each in self.reads[name] for base in self.bases_of(each)} if name in self.reads else {name}

    def changed(self, name: str, minute: int) -> None:
        """Note a commit to a table."""
        for reader, sources in self.reads.items():
            if name in sources:
                self.at.setdefault((reader, name), minute)

    def follows(self, name: str) -> bool:
        """Return whether readers refresh a table."""
        return self.lags.get(name) == "downstream" and name not in self.suspended

    def refresh(self, name: str, minute: int) -> None:
        """Refresh a table, after those that it refreshes first."""
        for source in self.reads[name]:
            if self.follows(source):
                self.refresh(source, minute)
        answer: Rows = {}
        for source in self.reads[name]:
            self.at.pop((name, source), None)
            for key, value in self.rows[source].items():
                answer[key] = max(answer.get(key, value + 1), value + 1)
        self.new.discard(name)
        if answer != self.rows[name]:
            self.rows[name] = answer
            self.changed(name, minute)

    def since(self, name: str) -> int | None:
        """Return since when a table lags behind, also through those refreshed first; -1: it was never refreshed."""
        found = [-1] if name in self.new else []
        for source in self.reads[name]:
            found += [self.at[name, source]] if (name, source) in self.at else []
            of_source = self.since(source) if self.follows(source) else None
            found += [] if of_source is None else [of_source]
        return min(found, default=None)

    def schedule(self, minute: int) -> None:
        """Refresh the tables that are due, in the order of their names, in which none reads a later one."""
        for name in sorted(self.reads):
            lag, since = self.lags[name], self.since(name)
            if name in self.suspended or isinstance(lag, str) or since is None:
                continue
            if since == -1 or minute - since >= (lag or 0) / 2:
                self.refresh(name, minute)


@pytest.mark.parametrize("seed", range(4))
def test_random_tables_hold_what_a_model_of_lags_says(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is committed but when the model says so: the rows would be newer than those of the model."""
    draw = random.Random(seed)  # noqa: S311  not for secrets
    print(f"seed {seed}")
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    bases = ["s.base0", "s.base1"]
    model = Model(rows={name: {} for name in bases})
    for name in bases:
        create_base(catalog, name)
    names = [f"s.m{number}" for number in range(6)]
    for place, name in enumerate(names):
        model.reads[name] = model.drawn_sources(draw, bases + names[:place])
        model.lags[name] = draw.choice((None, 20, "downstream", "downstream"))
        model.rows[name] = {}
        model.new.add(name)
        lag = model.lags[name]
        define(catalog, name, *model.reads[name], freshness=f"PT{lag}M" if isinstance(lag, int) else lag)

    minute = 0
    began = system_environment().clock.now_millis()
    # All commits of a minute have its time, whatever the test takes.
    monkeypatch.setattr(SystemClock, "now_millis", lambda _: began + minute * 60_000)
    for _ in range(25):
        action = draw.choice(("write", "write", "write", "wait", "schedule", "schedule", "request", "suspend", "lag"))
        minute += draw.choice((5, 15)) if action == "wait" else 0
        act(catalog, model, action, draw.choice(bases if action == "write" else names), minute, draw)
        assert {each: rows_of(catalog, each) for each in names} == {each: model.rows[each] for each in names}, action


def act(catalog: Catalog, model: Model, action: str, name: str, minute: int, draw: random.Random) -> None:
    """Do the same to the tables and to the model."""
    if action == "write":
        row = {"id": draw.randrange(3), "v": draw.randrange(1000)}
        if model.rows[name].get(row["id"]) != row["v"]:
            model.rows[name][row["id"]] = row["v"]
            catalog.load_table(name).upsert([row])
            model.changed(name, minute)
    elif action == "schedule":
        scheduler(catalog)[0].run_once()
        model.schedule(minute)
    elif action == "request":
        refreshed(catalog.load_table(name))
        model.refresh(name, minute)
    elif action == "suspend":
        change = resume if name in model.suspended else suspend
        change(catalog.load_table(name))
        model.suspended ^= {name}
    elif action == "lag" and any(name in sources for sources in model.reads.values()):
        set_freshness(catalog.load_table(name), "downstream")
        model.lags[name] = "downstream"
