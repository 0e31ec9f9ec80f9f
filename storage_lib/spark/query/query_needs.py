"""Needs of a batch query for each table: the columns, and a condition that its rows have to meet.

The query is analysed and optimised over empty relations of the tables' columns, so Spark itself moves conditions to
the tables and finds the columns that are used. Only then is a read planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from storage_lib.schema.filter.predicate import Predicate, both
from storage_lib.spark.native.file_relation import relation_of
from storage_lib.spark.translation.java_filters import either, pruning_predicate
from storage_lib.spark.translation.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.schema.table_schema import TableSchema

_NUMBER = "dynamic-table.number"
_USES_ITS_COLUMNS = ("Project", "Aggregate")
"""Nodes that output nothing but what their expressions compute."""


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """``columns`` are the columns whose values are used; ``predicate`` holds for every row that matters (None: all)."""

    columns: frozenset[str]
    predicate: Predicate | None


def empty_relation(spark: SparkSession, schema: TableSchema, number: int) -> DataFrame:
    """Return a relation without rows that has a table's columns, to be found in a plan by its number.

    All columns are nullable: ``count(id)`` of a NOT NULL column would be simplified to ``count(1)``, which uses no
    column, but the real read has nulls in columns that are not used.
    """
    fields = [StructField(each.name, each.dataType) for each in struct_of(schema).fields]
    return relation_of(spark, [], StructType(fields), "parquet", {_NUMBER: str(number)})


def needs_of(df: DataFrame, schemas: Mapping[int, TableSchema]) -> dict[int, TableNeeds]:
    """Return the needs of a query by the numbers of its empty relations; a table that is not read has no entry.

    Raises pyspark's exceptions for a query that Spark can't optimise.
    """
    found: dict[int, TableNeeds] = {}
    jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001  pyspark has no public way to plans
    plan = df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
    for number, needs in _needs_in(jvm, plan, schemas):
        other = found.get(number)
        found[number] = needs if other is None else _together(needs, other)
    return found


def _together(one: TableNeeds, other: TableNeeds) -> TableNeeds:
    return TableNeeds(one.columns | other.columns, either(one.predicate, other.predicate))


def _needs_in(jvm: Any, plan: Any, schemas: Mapping[int, TableSchema]) -> Iterator[tuple[int, TableNeeds]]:
    """Yield the needs at each place where a relation is read, including subqueries."""
    waiting: list[tuple[Any, tuple[Any, ...], Any]] = [(plan, (), None)]
    seen: set[int] = set()
    while waiting:
        node, conditions, user = waiting.pop()
        number = _number_of(node)
        if number is not None:
            yield number, _needs_at(jvm, node, conditions, user, schemas[number])
            continue
        name = str(node.getClass().getSimpleName())
        children = node.children()
        if name == "Filter":
            waiting.append((node.child(), (*conditions, node.condition()), user))
        else:
            above = node if name in _USES_ITS_COLUMNS else None
            waiting += [(children.apply(place), (), above) for place in range(children.size())]
        for below in (node.subqueries(), node.innerChildren()):
            for place in range(below.size()):
                inner = below.apply(place)
                identity = jvm.java.lang.System.identityHashCode(inner)
                if identity not in seen:
                    seen.add(identity)
                    waiting.append((inner, (), None))


def _number_of(node: Any) -> int | None:
    if str(node.getClass().getSimpleName()) != "LogicalRelation":
        return None
    relation = node.relation()
    if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
        return None
    number = relation.options().get(_NUMBER)
    return int(number.get()) if number.isDefined() else None


def _needs_at(jvm: Any, leaf: Any, conditions: tuple[Any, ...], user: Any, schema: TableSchema) -> TableNeeds:
    output = leaf.output()
    names = {int(output.apply(place).exprId().id()): str(output.apply(place).name()) for place in range(output.size())}
    if user is None:
        columns = frozenset(names.values())
    else:
        used = [each for of in (user, *conditions) for each in _references(of)]
        columns = frozenset(names[each] for each in used if each in names)
    predicate: Predicate | None = None
    for condition in conditions:
        predicate = both(predicate, pruning_predicate(jvm, condition, schema))
    return TableNeeds(columns, predicate)


def _references(of: Any) -> list[int]:
    attributes = of.references().toSeq()
    return [int(attributes.apply(place).exprId().id()) for place in range(attributes.size())]
