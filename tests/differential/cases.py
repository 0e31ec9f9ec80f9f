"""Generates a case from a seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.differential.case import Branch, Case, Item, LogMode, Row, Sink, Source, StreamQuery
from tests.differential.histories import CATEGORIES, History, random_dimension
from tests.differential.queries import Tables, random_query, random_tables
from tests.differential.verdict import NULLABLE_KEY

_RARE = ("BOOLEAN", "DATE", "DECIMAL(8, 2)", "TIMESTAMP(6)")
_KEY_KINDS = ("BIGINT", "BIGINT", "STRING", "INT", "DATE")
_LOGS: tuple[LogMode, ...] = ("none", "upsert", "upsert", "all-lookup", "all-input")
_OTHER_KEYS = (
    ("coalesce(s.cat, -1)", "INT"),
    ("coalesce(abs(s.n) % 3, 9)", "BIGINT"),
    ("coalesce(s.s, '-')", "STRING"),
    ("coalesce(s.n, 0)", "BIGINT"),
    (NULLABLE_KEY, "BIGINT"),
)
_AGGREGATES = 0.4
_OF_PLAIN_LOGS: tuple[LogMode, ...] = ("none", "upsert")


def random_case(seed: int, *, drains_max: int = 3, changes_max: int = 20) -> Case:
    """Return the case of a seed; the bounds limit its history."""
    rng = Random(seed)  # noqa: S311  chance, not secrets
    source = _source(rng)
    tables = random_tables(rng)
    query, sink = _query_and_sink(rng, source, tables)
    history = History(rng, source)
    case = Case(
        seed=seed,
        source=source,
        dimension=random_dimension(rng),
        details=_details(rng),
        query=query,
        sink=sink,
        steps=tuple(history.steps(drains_max=drains_max, changes_max=changes_max)),
        normalize=_normalize(rng, source),
        from_snapshot=rng.random() < 0.4,
        conf=_conf(rng),
    )
    # With an explicit ``none``, an aggregating table counts each update as an additional row.
    aggregates = not sink.key and not sink.is_append_only and case.normalize != "none" and rng.random() < _AGGREGATES
    return replace(case, sink=replace(sink, aggregates=aggregates))


def _normalize(rng: Random, source: Source) -> str | None:
    """Draw `scan.normalize`; only a stream of a log has a state."""
    drawn = rng.choices((None, "lookup", "none", "state"), weights=(24, 2, 1, 1))[0] if source.key else None
    return "lookup" if drawn == "state" and source.log == "none" else drawn


def _source(rng: Random) -> Source:
    kind = rng.choices(("keyed", "keyless", "append-only"), weights=(8, 1, 1))[0]
    is_composite = kind == "keyed" and rng.random() < 0.2
    columns = [("k", rng.choice(_KEY_KINDS))]
    if is_composite:
        columns.append(("j", rng.choice(_KEY_KINDS)))
    partition = "p" if rng.random() < 0.35 else None
    if partition:
        columns.append((partition, "STRING"))
    columns += [("cat", "INT"), ("n", "BIGINT"), ("u", "BIGINT"), ("s", "STRING")]
    columns += [(f"x{place}", each) for place, each in enumerate(rng.sample(_RARE, rng.choice((0, 0, 1, 2))))]
    rng.shuffle(columns)
    log = rng.choice(_LOGS) if kind == "keyed" else rng.choice(_OF_PLAIN_LOGS)
    key: tuple[str, ...] = () if kind != "keyed" else ("k", "j") if is_composite else ("k",)
    return Source(
        columns=tuple(columns),
        key=key,
        partition=partition,
        buckets=rng.choice((1, 1, 2, 3)) if key else 1,
        log=log,
        is_append_only=kind == "append-only",
        is_eventual=bool(key) and log == "upsert" and rng.random() < 0.2,
    )


def _query_and_sink(rng: Random, source: Source, tables: Tables) -> tuple[StreamQuery, Sink]:
    branches = 1 if rng.random() < 0.87 else 2
    kind = rng.choices(("same", "unique", "other", "keyless", "append-only"), weights=(12, 4, 4, 5, 0.7))[0]
    if not source.key and kind in ("same", "unique"):
        kind = "keyless"
    leading = _key_items(rng, source, tables, kind, branches=branches)
    key = tuple(item.name for item in leading)
    partition = None
    if rng.random() < 0.25:
        partition = "part"
        of_partition = "s.p" if source.partition and rng.random() < 0.5 else "coalesce(s.cat, -1)"
        leading.append(Item(sql=of_partition, type="STRING" if of_partition == "s.p" else "INT", name="part"))
    of_branches = tuple(leading)

    def leading_of(number: int) -> tuple[Item, ...]:
        return tuple(replace(item, sql=str(number)) if item.name == "branch" else item for item in of_branches)

    query = random_query(rng, source, tables, leading_of, branches=branches)
    if rng.random() < 0.3:
        query = _in_another_order(rng, query)
    if not source.is_append_only:
        query = _with_carried(rng, query)
    return query, _sink(rng, key, partition, is_append_only=kind == "append-only")


def _key_items(rng: Random, source: Source, tables: Tables, kind: str, *, branches: int) -> list[Item]:
    """Return the columns of the sink's key; an empty list for a sink without one."""
    kinds = dict(source.columns)
    if kind == "same":
        names = source.primary_key if rng.random() < 0.7 else source.key
        renamed = rng.random() < 0.5
        items = [Item(sql=f"s.{name}", type=kinds[name], name=f"r_{name}" if renamed else name) for name in names]
    elif kind == "unique":
        items = [Item(sql="coalesce(s.u, -1)", type="BIGINT", name="u")]
    elif kind == "other":
        sql, of = rng.choice(_OTHER_KEYS)
        items = [Item(sql=sql, type=of, name="other")]
    else:
        return []
    if tables.extra is not None and rng.random() < 0.75:
        items.append(Item(sql=tables.extra[0], type=tables.extra[1], name="extra"))
    if branches > 1 and rng.random() < 0.7:
        items.append(Item(sql="0", type="INT", name="branch"))
    return items


def _in_another_order(rng: Random, query: StreamQuery) -> StreamQuery:
    order = list(range(len(query.branches[0].items)))
    rng.shuffle(order)

    def turned(branch: Branch) -> Branch:
        return replace(branch, items=tuple(branch.items[place] for place in order))

    return replace(query, branches=tuple(turned(branch) for branch in query.branches))


def _with_carried(rng: Random, query: StreamQuery) -> StreamQuery:
    """Carry the row kind in the query at random, more often where the product can't append it to the columns."""
    is_simple = len(query.branches) == 1 and query.form == "plain"
    chance = rng.random()
    if chance < (0.9 if is_simple else 0.25):
        return query
    with_position = rng.random() < 0.6
    return replace(query, carried=("_row_kind", "_row_position") if with_position else ("_row_kind",))


def _sink(rng: Random, key: tuple[str, ...], partition: str | None, *, is_append_only: bool) -> Sink:
    log = rng.choice(_LOGS) if key else rng.choice(_OF_PLAIN_LOGS)
    is_eventual = bool(key) and log == "upsert" and rng.random() < 0.3
    return Sink(
        key=key,
        partition=partition,
        buckets=rng.choice((1, 1, 2, 3)) if key else 1,
        log=log,
        consistency="eventual" if is_eventual else "transactional",
        is_append_only=is_append_only,
    )


def _details(rng: Random) -> tuple[Row, ...]:
    return tuple(
        (cat, tag, rng.choice(("red", "green", None)))
        for cat in range(CATEGORIES)
        for tag in rng.sample(range(4), rng.choice((0, 1, 2)))
    )


def _conf(rng: Random) -> tuple[tuple[str, str], ...]:
    return (
        ("spark.sql.autoBroadcastJoinThreshold", rng.choice(("-1", "-1", "-1", "10485760"))),
        ("spark.sql.adaptive.enabled", rng.choice(("true", "false"))),
        ("spark.sql.shuffle.partitions", rng.choice(("1", "2", "3"))),
        ("spark.sql.join.preferSortMergeJoin", rng.choice(("true", "true", "false"))),
    )
