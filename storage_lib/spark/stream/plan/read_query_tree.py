"""Convert Spark's analysed plan, in which names, types and sub-queries are resolved, to a ``query_tree``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from storage_lib.catalog.table_cache import table_at
from storage_lib.log_store.external.external_topic import COLUMN_TYPES, ExternalTopic
from storage_lib.schema.options.source_options import BeforeImage
from storage_lib.schema.options.table_options import LogConsistency, ScanNormalize
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN
from storage_lib.spark.data_source import changelog_source, statement_options
from storage_lib.spark.reading.frame_mark import snapshot_in
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
from storage_lib.spark.types.spark_schema import ROW_POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_SAME = frozenset(
    {
        "SubqueryAlias",
        "View",
        "EventTimeWatermark",
        "UpdateEventTimeWatermarkColumn",
        "ResolvedHint",
        "CollectMetrics",
    }
)
_SHUFFLES = {
    "Repartition": "repartition",
    "RepartitionByExpression": "repartition",
    "RebalancePartitions": "a rebalancing of partitions",
}
_FUNCTIONS = ("Map", "PythonMap", "Deserialize", "Serialize", "TypedFilter", "AppendColumns", "ScriptTransformation")
"""Prefixes of the names of plan nodes that run user code on single rows or batches."""
_SUBQUERIES = frozenset({"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery"})
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_OF_THE_CLOCK = re.compile(
    r"\b(current_timestamp|current_date|current_time|localtimestamp|now|curdate|unix_timestamp)\(\)", re.IGNORECASE
)
_TEXT_MAX = 80


def tree_of(df: DataFrame) -> Node:
    """Return the data frame's query as a tree."""
    return _Reader(df).node(df._jdf.queryExecution().analyzed())  # noqa: SLF001  pyspark offers no other way


def column_numbers(df: DataFrame) -> dict[str, int]:
    """Return the numbers of the data frame's columns, by name."""
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001
    return dict(_columns(plan))


class _Reader:
    def __init__(self, df: DataFrame) -> None:
        jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001
        self._has_subquery = jvm.org.apache.spark.sql.catalyst.expressions.SubqueryExpression.hasSubquery
        self._ctes: dict[int, Any] = {}

    def node(self, plan: Any) -> Node:
        name = str(plan.getClass().getSimpleName())
        known: dict[str, Callable[[Any], Node]] = {
            "WithCTE": self._with_ctes,
            "CTERelationRef": self._reference,
            "Project": lambda of: Project(child=self.node(of.child()), columns=dict(self._values(of.projectList()))),
            "Filter": lambda of: Filter(child=self.node(of.child()), condition=self._value(of.condition())),
            "Join": lambda of: self._join(of, of.right()),
            "LateralJoin": lambda of: self._join(of, of.right().plan()),
            "Expand": self._expand,
            "Union": self._union,
            "Generate": self._generate,
            **dict.fromkeys(_SAME, self._same),
            **dict.fromkeys(_SHUFFLES, lambda of: Shuffle(child=self.node(of.child()), what=_SHUFFLES[name])),
        }
        if name in known:
            return known[name](plan)
        return self._leaf(plan, name) if plan.children().size() == 0 else self._opaque(plan, name)

    def _with_ctes(self, plan: Any) -> Node:
        for definition in _each(plan.cteDefs()):
            self._ctes[definition.id()] = definition
        return self.node(plan.plan())

    def _generate(self, plan: Any) -> Node:
        value = replace(self._value(plan.generator()), same_as=None)
        made = {number: value for _, number in _each_column(plan.generatorOutput())}
        return Expand(child=self.node(plan.child()), columns=made, may_drop=not plan.outer())

    def _expand(self, plan: Any) -> Node:
        """Convert Spark's Expand node, which emits one row per projection for each input row."""
        projections = [[self._value(each) for each in _each(of)] for of in _each(plan.projections())]
        made = {
            number: values[0] if len(set(values)) == 1 else _either(values)
            for (_, number), values in zip(_columns(plan), zip(*projections, strict=True), strict=True)
        }
        return Expand(child=self.node(plan.child()), columns=made, may_drop=False)

    def _opaque(self, plan: Any, name: str) -> Node:
        combines = name in ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "Window") or (
            "Groups" in name or "WithState" in name or name in ("GlobalLimit", "LocalLimit", "Intersect", "Except")
        )
        return Opaque(
            children=tuple(self.node(child) for child in _each(plan.children())),
            what=name,
            combines=combines,
            is_function=name.startswith(_FUNCTIONS),
            columns=frozenset(number for _, number in _columns(plan)),
        )

    def _same(self, plan: Any) -> Node:
        frame = (
            snapshot_in(str(plan.identifier().name())) if plan.getClass().getSimpleName() == "SubqueryAlias" else None
        )
        if frame is not None:
            table = FixedTable(name=frame.table, is_pinned=frame.is_named, is_frozen=not frame.is_named)
            return Fixed(table=table, columns=frozenset(number for _, number in _columns(plan)))
        child = plan.children().apply(0)
        inner = self.node(child)
        own, below = _columns(plan), _columns(child)
        if own == below:
            return inner
        # A view or an alias may assign new numbers to its columns.
        columns = {
            number: Value(reads=frozenset([other]), same_as=other)
            for (_, number), (_, other) in zip(own, below, strict=True)
        }
        return Project(child=inner, columns=columns)

    def _reference(self, plan: Any) -> Node:
        definition = self._ctes.get(plan.cteId())
        own = _columns(plan)
        if definition is None or len(_columns(definition)) != len(own):
            return Opaque(children=(), what="a common table expression", columns=frozenset(each for _, each in own))
        columns = {
            number: Value(reads=frozenset([other]), same_as=other)
            for (_, number), (_, other) in zip(own, _columns(definition), strict=True)
        }
        return Project(child=self.node(definition.child()), columns=columns)

    def _join(self, plan: Any, right: Any) -> Node:
        condition = plan.condition()
        try:
            kind = JoinKind(str(plan.joinType().sql()))
        except ValueError:
            return Opaque(
                children=(self.node(plan.left()), self.node(right)),
                what="a join",
                combines=True,
                columns=frozenset(number for _, number in _columns(plan)),
            )
        return Join(
            left=self.node(plan.left()),
            right=self.node(right),
            kind=kind,
            condition=self._value(condition.get()) if condition.isDefined() else Value(),
            broadcasts_left=_is_broadcast(plan.left()),
            broadcasts_right=_is_broadcast(right) and not _has_hint(plan.left()),
        )

    def _union(self, plan: Any) -> Node:
        children = _each(plan.children())
        inputs = [[number for _, number in _columns(child)] for child in children]
        columns = {
            number: tuple(of_child[place] for of_child in inputs) for place, (_, number) in enumerate(_columns(plan))
        }
        return Union(children=tuple(self.node(child) for child in children), columns=columns)

    def _leaf(self, plan: Any, name: str) -> Node:
        columns = dict(_columns(plan))
        if name.startswith("Streaming"):
            options = options_in(plan.extraOptions()) if name == "StreamingRelationV2" else {}
            is_ours = name == "StreamingRelationV2" and str(plan.sourceName()) == statement_options.SOURCE_NAME
            return Stream(table=_our_stream(options, columns) if is_ours else _foreign_stream(plan, name, columns))
        numbers = frozenset(columns.values())
        if plan.isStreaming():
            return Stream(table=StreamTable(name="a stream", columns=columns, is_foreign=True))
        if name == "DataSourceV2Relation":
            return Fixed(table=_fixed_table(options_in(plan.options())), columns=numbers)
        return Fixed(table=FixedTable(name="rows of Spark's", is_pinned=True), columns=numbers)

    def _values(self, expressions: Any) -> Iterator[tuple[int, Value]]:
        for each in _each(expressions):
            yield int(each.exprId().id()), self._value(each)

    def _value(self, expression: Any) -> Value:
        text = str(expression.sql())
        described = str(expression.toString())
        tables: tuple[FixedTable, ...] = ()
        if self._has_subquery(expression):
            tables = tuple(dict.fromkeys(self._tables_inside(expression)))
        return Value(
            reads=_reads(expression),
            same_as=None if tables else _same_as(expression),
            is_stable=bool(expression.deterministic()) and _OF_THE_CLOCK.search(described) is None,
            tables=tables,
            text=_shortened(text),
        )

    def _tables_inside(self, expression: Any) -> Iterator[FixedTable]:
        """Yield the tables that the sub-queries of an expression read."""
        if expression.getClass().getSimpleName() in _SUBQUERIES:
            yield from _fixed_in(self.node(expression.plan()))
        for child in _each(expression.children()):
            yield from self._tables_inside(child)


def _either(values: tuple[Value, ...]) -> Value:
    """Return a value that stands for any one of these values."""
    return Value(
        reads=frozenset().union(*(each.reads for each in values)),
        is_stable=all(each.is_stable for each in values),
        tables=tuple(dict.fromkeys(table for each in values for table in each.tables)),
        text=", ".join(each.text for each in values),
    )


def _fixed_in(node: Node) -> Iterator[FixedTable]:
    if isinstance(node, Fixed):
        yield node.table
    for child in _children(node):
        yield from _fixed_in(child)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Stream() | Fixed():
            return ()
        case Join():
            return (node.left, node.right)
        case Union() | Opaque():
            return node.children
        case _:
            return (node.child,)


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _columns(plan: Any) -> list[tuple[str, int]]:
    return list(_each_column(plan.output()))


def _each_column(attributes: Any) -> Iterator[tuple[str, int]]:
    for each in _each(attributes):
        yield str(each.name()), int(each.exprId().id())


def _reads(expression: Any) -> frozenset[int]:
    found = expression.references().toSeq()
    return frozenset(int(each.exprId().id()) for each in _each(found))


def _same_as(expression: Any) -> int | None:
    """Return the column of which this expression is an alias or a lossless cast; None if it is neither."""
    name = expression.getClass().getSimpleName()
    if name == "AttributeReference":
        return int(expression.exprId().id())
    if name == "Alias":
        return _same_as(expression.child())
    if name == "Cast":
        given, wanted = (str(each.dataType().catalogString()) for each in (expression.child(), expression))
        is_lossless = given == wanted or (
            given in _WHOLE_NUMBERS
            and wanted in _WHOLE_NUMBERS
            and _WHOLE_NUMBERS.index(given) <= _WHOLE_NUMBERS.index(wanted)
        )
        return _same_as(expression.child()) if is_lossless or (given in _WHOLE_NUMBERS and wanted == "string") else None
    return None


def _is_broadcast(plan: Any) -> bool:
    while plan.getClass().getSimpleName() in ("SubqueryAlias", "ResolvedHint"):
        if plan.getClass().getSimpleName() == "ResolvedHint":
            strategy = plan.hints().strategy()
            if strategy.isDefined():
                return str(strategy.get().displayName()) == "broadcast"
        plan = plan.children().apply(0)
    return False


def _has_hint(plan: Any) -> bool:
    while plan.getClass().getSimpleName() in ("SubqueryAlias", "ResolvedHint"):
        if plan.getClass().getSimpleName() == "ResolvedHint":
            return True
        plan = plan.children().apply(0)
    return False


def options_in(found: Any) -> dict[str, str]:
    """Return the options of a node of a plan, with their keys as they were given."""
    entries = found.asCaseSensitiveMap()
    return {str(key): str(entries[key]) for key in entries}


def _our_stream(options: Mapping[str, str], columns: Mapping[str, int]) -> StreamTable:
    parsed = statement_options.StatementOptions.parse(options)
    table = table_at(parsed.address, parsed.table_uuid)
    is_eventual = table.log is not None and table.options.log_consistency is LogConsistency.EVENTUAL
    return StreamTable(
        name=table.name,
        columns=columns,
        primary_keys=table.schema.primary_keys,
        kind_column=table.new_read().stream_row_kind_column,
        position_column=ROW_POSITION if ROW_POSITION in columns else None,
        normalize=parsed.scan.normalize or _own_normalize(table),
        is_complete=table.new_read().stream_is_complete,
        is_eventual=is_eventual,
        moves_keys=bool(table.schema.primary_keys)
        and not set(table.schema.partition_keys) <= set(table.schema.primary_keys),
        is_whole=parsed.scan.whole_commits or table.log is None or is_eventual,
    )


def _own_normalize(table: DynamicTable) -> str | None:
    """Return the table's option, or None for ``none``, which does not prevent normalization where it is needed."""
    own = table.options.scan_normalize
    return None if own is ScanNormalize.NONE else str(own)


def _foreign_stream(plan: Any, name: str, columns: Mapping[str, int]) -> StreamTable:
    source = str(plan.sourceName()) if name in ("StreamingRelation", "StreamingRelationV2") else name
    if name == "StreamingRelationV2" and source == changelog_source.SOURCE_NAME:
        return _topic(options_in(plan.extraOptions()), columns)
    return StreamTable(name=f"a stream of {source}", columns=columns, is_foreign=True)


def _topic(options: Mapping[str, str], columns: Mapping[str, int]) -> StreamTable:
    topic = ExternalTopic.parse({key: each for key, each in options.items() if key != COLUMN_TYPES}, pa.schema([]))
    has_whole_rows = topic.settings.before_image is BeforeImage.WHOLE and not topic.format.is_upsert
    is_applied = topic.applied_to is not None  # its write refuses any query
    # Each change has its kind as well.
    given = (*topic.primary_keys, ROW_KIND_COLUMN)
    return StreamTable(
        name=f"topic {topic.name!r}",
        columns=columns,
        primary_keys=tuple(each for each in given if each in columns),
        is_foreign=True,
        leaves_out=not (has_whole_rows or is_applied),
    )


def _fixed_table(options: Mapping[str, str]) -> FixedTable:
    if statement_options.TABLE not in options and statement_options.PATH not in options:
        return FixedTable(name="a table of Spark's", is_pinned=True)
    name = options.get(statement_options.TABLE) or options[statement_options.PATH]
    pinned = (statement_options.SNAPSHOT_ID, statement_options.TAG_NAME, statement_options.SCAN_TIMESTAMP_MILLIS)
    return FixedTable(name=name, is_pinned=any(key in options for key in pinned))


def _shortened(text: str) -> str:
    plain = re.sub(r"`|dynamic_table_\d+_\d+\.|spark_catalog\.", "", text)
    return plain if len(plain) <= _TEXT_MAX else f"{plain[: _TEXT_MAX - 3]}..."
