"""Facts about the rows that a streaming query derives from changes, collected in one walk through its tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from storage_lib.spark.stream.plan.query_tree import (
    Expand,
    Filter,
    Fixed,
    FixedTable,
    Join,
    JoinKind,
    Node,
    Opaque,
    Project,
    Shuffle,
    Stream,
    StreamTable,
    Union,
    Value,
)

_PRESERVED = {JoinKind.LEFT: "left", JoinKind.RIGHT: "right"}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """Properties of a query's rows and columns. Columns are Spark's numbers; reasons are phrases for error messages.

    ``streams``: the tables whose changes the query reads. ``fixed``: the tables that it reads as a whole.

    Columns: ``keys`` are columns of the single stream's primary key, ``of_key`` columns that depend only on that key,
    ``of_tables`` columns that depend on other tables, ``unstable`` columns that may differ when computed again.
    ``kinds`` and ``positions`` are copies of the stream's own, ``reads_kind`` columns computed from the kind.

    Reasons: ``drops`` is why the changes of one row may pass the query at one time and not at another;
    ``drops_by_tables`` and ``drops_at_chance`` if that depends on other tables or on randomness. ``multiplies`` is why
    one row may become several, ``reorders`` why rows may change their order. ``judges_kinds``: a condition reads the
    kind. Operations that cannot be analysed: ``opaque`` are user functions, ``combined`` results computed from several
    rows, ``unknown`` other operations of Spark.
    """

    streams: tuple[StreamTable, ...] = ()
    fixed: tuple[FixedTable, ...] = ()
    keys: Mapping[int, str] = field(default_factory=dict)
    of_key: frozenset[int] = frozenset()
    of_tables: frozenset[int] = frozenset()
    unstable: frozenset[int] = frozenset()
    kinds: frozenset[int] = frozenset()
    reads_kind: frozenset[int] = frozenset()
    positions: frozenset[int] = frozenset()
    drops: tuple[str, ...] = ()
    drops_by_tables: bool = False
    drops_at_chance: bool = False
    multiplies: tuple[str, ...] = ()
    reorders: tuple[str, ...] = ()
    judges_kinds: bool = False
    opaque: tuple[str, ...] = ()
    combined: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def stream(self) -> StreamTable | None:
        """The only stream that the query reads; None if it reads no stream or several."""
        return self.streams[0] if len(self.streams) == 1 else None

    @property
    def frozen(self) -> tuple[str, ...]:
        """Names of the tables in ``fixed`` whose snapshot was the newest when their data frame was made."""
        return tuple(dict.fromkeys(each.name for each in self.fixed if each.is_frozen))

    @property
    def unpinned(self) -> tuple[str, ...]:
        """Names of the tables in ``fixed`` whose rows may change while the query runs."""
        return tuple(dict.fromkeys(each.name for each in self.fixed if not each.is_pinned))


def facts_of(node: Node) -> QueryFacts:  # noqa: PLR0911  one return for each kind of node
    """Return the facts about the rows of a tree."""
    match node:
        case Stream():
            return _of_stream(node.table)
        case Fixed():
            return QueryFacts(fixed=(node.table,), of_tables=node.columns)
        case Project():
            return _projected(facts_of(node.child), node.columns)
        case Filter():
            return _filtered(facts_of(node.child), node.condition, f"WHERE {node.condition.text}")
        case Join():
            return _joined(node)
        case Union():
            return _united(node)
        case Shuffle():
            child = facts_of(node.child)
            return replace(child, reorders=(*child.reorders, node.what)) if child.streams else child
        case Expand():
            child = facts_of(node.child)
            grown = _with_columns(child, node.columns)
            what = ("rows made of the values of a column",) if child.streams else ()
            drops = what if node.may_drop else ()
            return replace(grown, drops=(*grown.drops, *drops), multiplies=(*grown.multiplies, *what))
        case Opaque():
            return _opaque(node)


def _of_stream(table: StreamTable) -> QueryFacts:
    keys = {table.columns[name]: name for name in table.primary_keys if name in table.columns}
    kind = table.columns.get(table.kind_column or "")
    position = table.columns.get(table.position_column or "")
    kinds = frozenset() if kind is None else frozenset([kind])
    return QueryFacts(
        streams=(table,),
        keys=keys,
        of_key=frozenset(keys),
        kinds=kinds,
        reads_kind=kinds,
        positions=frozenset() if position is None else frozenset([position]),
    )


def _with_columns(child: QueryFacts, columns: Mapping[int, Value]) -> QueryFacts:
    """Return the child's facts with additional columns."""
    keys, of_key, of_tables = dict(child.keys), set(child.of_key), set(child.of_tables)
    unstable, kinds, reads_kind = set(child.unstable), set(child.kinds), set(child.reads_kind)
    positions = set(child.positions)
    fixed = list(child.fixed)
    for number, value in columns.items():
        if value.same_as is not None:
            if value.same_as in child.keys:
                keys[number] = child.keys[value.same_as]
            if value.same_as in child.kinds:
                kinds.add(number)
            if value.same_as in child.positions:
                positions.add(number)
        if value.reads & child.reads_kind:
            reads_kind.add(number)
        if not value.is_stable or value.reads & child.unstable:
            unstable.add(number)
        if value.tables or value.reads & child.of_tables:
            of_tables.add(number)
        elif value.is_stable and value.reads <= child.of_key:
            of_key.add(number)
        fixed += value.tables
    return replace(
        child,
        fixed=tuple(fixed),
        reorders=(*child.reorders, *(_joins_in(columns) if child.streams else ())),
        keys=keys,
        of_key=frozenset(of_key),
        of_tables=frozenset(of_tables),
        unstable=frozenset(unstable),
        kinds=frozenset(kinds),
        reads_kind=frozenset(reads_kind),
        positions=frozenset(positions),
    )


def _joins_in(columns: Mapping[int, Value]) -> list[str]:
    """Return reasons for reordering by values with a sub-query, which Spark turns into joins."""
    return [f"the join that {value.text} becomes" for value in columns.values() if value.tables]


def _projected(child: QueryFacts, columns: Mapping[int, Value]) -> QueryFacts:
    return _only(_with_columns(child, columns), frozenset(columns))


def _only(facts: QueryFacts, numbers: frozenset[int]) -> QueryFacts:
    return replace(
        facts,
        keys={number: name for number, name in facts.keys.items() if number in numbers},
        of_key=facts.of_key & numbers,
        of_tables=facts.of_tables & numbers,
        unstable=facts.unstable & numbers,
        kinds=facts.kinds & numbers,
        reads_kind=facts.reads_kind & numbers,
        positions=facts.positions & numbers,
    )


def _filtered(child: QueryFacts, condition: Value, what: str) -> QueryFacts:
    """Return the facts after a filter. A condition on the key alone passes all changes of a row or none of them."""
    facts = replace(child, fixed=(*child.fixed, *condition.tables))
    at_chance = facts.drops_at_chance or not condition.is_stable or bool(condition.reads & child.unstable)
    if not child.streams:
        return replace(facts, drops_at_chance=at_chance)
    judges = bool(condition.reads & child.reads_kind)
    if condition.tables:
        # Spark turns a condition with a sub-query into a join.
        facts = replace(facts, reorders=(*facts.reorders, f"the join that {what} becomes"))
    is_fixed = condition.is_stable and not condition.tables and condition.reads <= child.of_key
    return replace(
        facts,
        judges_kinds=facts.judges_kinds or judges,
        drops=facts.drops if is_fixed else (*facts.drops, what),
        drops_by_tables=facts.drops_by_tables or bool(condition.tables or condition.reads & child.of_tables),
        drops_at_chance=at_chance,
    )


def _joined(node: Join) -> QueryFacts:
    left, right = facts_of(node.left), facts_of(node.right)
    both = _joined_facts(left, right)
    both = replace(both, fixed=(*both.fixed, *node.condition.tables))
    if not both.streams:
        return both
    tables = ", ".join(dict.fromkeys(each.name for each in (right if left.streams else left).fixed)) or "rows"
    what = f"the join with {tables}"
    if (left.streams and right.streams) or node.kind is JoinKind.FULL:
        return replace(both, combined=(*both.combined, "a join of streams"))
    side = "left" if left.streams else "right"
    is_broadcast = node.broadcasts_right if side == "left" else node.broadcasts_left
    keeps = _PRESERVED.get(node.kind) == side
    if node.kind in (JoinKind.LEFT, JoinKind.RIGHT) and not keeps:
        return replace(both, combined=(*both.combined, "an outer join that keeps rows without a change"))
    static = right if side == "left" else left
    made = _columns_of(node.right if side == "left" else node.left)
    of_stream = both
    if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        of_stream = replace(
            both, of_key=both.of_key - made, of_tables=both.of_tables | made, multiplies=(*both.multiplies, what)
        )
    chance = not node.condition.is_stable or bool(static.drops_at_chance)
    return replace(
        of_stream,
        drops=both.drops if keeps else (*both.drops, what),
        drops_by_tables=both.drops_by_tables or not keeps,
        drops_at_chance=both.drops_at_chance or chance,
        judges_kinds=both.judges_kinds or bool(node.condition.reads & both.reads_kind),
        reorders=both.reorders if is_broadcast and not node.condition.tables else (*both.reorders, what),
    )


def _columns_of(node: Node) -> frozenset[int]:
    """Return the numbers of a tree's output columns, as far as they are known."""
    match node:
        case Project() | Union():
            return frozenset(node.columns)
        case Expand():
            return frozenset(node.columns) | _columns_of(node.child)
        case Filter() | Shuffle():
            return _columns_of(node.child)
        case Join():
            return _columns_of(node.left) | _columns_of(node.right)
        case Stream():
            return frozenset(node.table.columns.values())
        case Fixed() | Opaque():
            return node.columns


def _joined_facts(left: QueryFacts, right: QueryFacts) -> QueryFacts:
    return QueryFacts(
        streams=(*left.streams, *right.streams),
        fixed=(*left.fixed, *right.fixed),
        keys={**left.keys, **right.keys},
        of_key=left.of_key | right.of_key if left.streams or right.streams else frozenset(),
        of_tables=left.of_tables | right.of_tables,
        unstable=left.unstable | right.unstable,
        kinds=left.kinds | right.kinds,
        reads_kind=left.reads_kind | right.reads_kind,
        positions=left.positions | right.positions,
        drops=(*left.drops, *right.drops),
        drops_by_tables=left.drops_by_tables or right.drops_by_tables,
        drops_at_chance=left.drops_at_chance or right.drops_at_chance,
        multiplies=(*left.multiplies, *right.multiplies),
        reorders=(*left.reorders, *right.reorders),
        judges_kinds=left.judges_kinds or right.judges_kinds,
        opaque=(*left.opaque, *right.opaque),
        combined=(*left.combined, *right.combined),
        unknown=(*left.unknown, *right.unknown),
    )


def _united(node: Union) -> QueryFacts:
    children = [facts_of(each) for each in node.children]
    facts = QueryFacts()
    for each in children:
        facts = _joined_facts(facts, each)
    if not facts.streams:
        return replace(_only(facts, frozenset()), of_tables=frozenset(node.columns))
    if any(not each.streams for each in children):
        facts = replace(facts, combined=(*facts.combined, "a UNION with rows that no change makes"))
    pairs = {number: list(zip(children, inputs, strict=True)) for number, inputs in node.columns.items()}

    def of_all(name: str) -> frozenset[int]:
        return frozenset(
            number for number, inputs in pairs.items() if all(column in getattr(of, name) for of, column in inputs)
        )

    def of_any(name: str) -> frozenset[int]:
        return frozenset(
            number for number, inputs in pairs.items() if any(column in getattr(of, name) for of, column in inputs)
        )

    return replace(
        facts,
        keys={},
        of_key=frozenset(),
        of_tables=of_any("of_tables"),
        unstable=of_any("unstable"),
        kinds=of_all("kinds"),
        reads_kind=of_any("reads_kind"),
        positions=of_all("positions"),
    )


def _opaque(node: Opaque) -> QueryFacts:
    facts = QueryFacts()
    for each in node.children:
        facts = _joined_facts(facts, facts_of(each))
    emptied = replace(_only(facts, frozenset()), of_tables=node.columns, unstable=node.columns)
    if not facts.streams:
        return emptied
    if node.combines:
        return replace(emptied, kinds=facts.kinds & node.columns, combined=(*facts.combined, node.what))
    if node.is_function:
        return replace(emptied, opaque=(*facts.opaque, node.what))
    return replace(emptied, unknown=(*facts.unknown, node.what), reorders=(*facts.reorders, node.what))
