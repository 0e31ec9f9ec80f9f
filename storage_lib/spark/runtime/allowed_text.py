"""Untrusted SQL holds only what is listed: nodes of plans, expressions, and functions that read nothing but tables.

The tree of Spark's own parser is checked before Spark analyses it, because the analysis already evaluates some
functions. A class or a function that is not listed here is refused, so a newer Spark can't add a way out of the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]  # py4j has no types
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.pure_functions import OPERATORS, PURE_FUNCTIONS, PURE_TABLE_FUNCTIONS

__all__ = ["refuse_expression", "refuse_query"]

_CATALYST = "org.apache.spark.sql.catalyst."
_NODES = """
plans.logical: Aggregate AsOfJoin CTERelationDef CTERelationRef Deduplicate Distinct Except Filter Generate GlobalLimit
plans.logical: Intersect Join LateralJoin LimitAll LocalLimit LocalRelation Offset OneRowRelation Pivot Project Range
plans.logical: Repartition RepartitionByExpression Sample Sort Subquery SubqueryAlias Union Unpivot UnresolvedHint
plans.logical: UnresolvedWith Window WithWindowDefinition
analysis: GetColumnByOrdinal MultiAlias NamedParameter RelationTimeTravel ResolvedStar UnresolvedAlias
analysis: UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedHaving
analysis: UnresolvedInlineTable UnresolvedOrdinal UnresolvedPipeAggregateOrdinal UnresolvedQualify UnresolvedRelation
analysis: UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedStarWithColumns UnresolvedSubqueryColumnAliases
analysis: UnresolvedTVFAliases UnresolvedTableValuedFunction
expressions: Add Alias And AttributeReference BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Coalesce Collate
expressions: Concat Contains CreateArray CreateMap CreateNamedStruct Cube CurrentDate CurrentPath CurrentRow$
expressions: CurrentTime CurrentTimestamp CurrentTimestampLike CurrentUser Divide EqualNullSafe EqualTo Exists
expressions: ExtractValue GetStructField GreaterThan GreaterThanOrEqual GroupingSets ILike If In InSubquery
expressions: IntegralDivide IsNotNull IsNotUnknown IsNotUnknown$$anon$2 IsNull IsUnknown IsUnknown$$anon$1
expressions: LambdaFunction LateralSubquery LessThan LessThanOrEqual Like LikeAll LikeAny ListQuery Literal
expressions: LocalTimestamp Lower Multiply NamedArgumentExpression NamePlaceholder$ Not NotLikeAll NotLikeAny Now Or
expressions: Overlay PipeExpression PipeOperator RLike Remainder Rollup ScalarSubquery SemiStructuredExtract ShiftLeft
expressions: ShiftRight ShiftRightUnsigned SortOrder SpecifiedWindowFrame StringInstr StringLocate StringTrim
expressions: StringTrimBoth StringTrimLeft StringTrimRight Substring Subtract TimestampAdd TimestampDiff UnaryMinus
expressions: UnaryPositive UnboundedFollowing$ UnboundedPreceding$ Unnest UnresolvedCollation
expressions: UnresolvedNamedLambdaVariable UnresolvedWindowExpression UnspecifiedFrame$ WindowExpression
expressions: WindowSpecDefinition WindowSpecReference
expressions.aggregate: AggregateExpression AnyValue First Last
"""
_ALLOWED = frozenset(
    f"{_CATALYST}{package}.{name}"
    for package, _, names in (line.partition(": ") for line in _NODES.split("\n") if line)
    for name in names.split()
)
_NAMES = f"{_CATALYST}analysis.UnresolvedFunction"
_TABLE_NAMES = f"{_CATALYST}analysis.UnresolvedTableValuedFunction"
_GENERATOR = f"{_CATALYST}analysis.UnresolvedGenerator"
_RELATION = f"{_CATALYST}analysis.UnresolvedRelation"
_LEAVES = frozenset(
    [
        f"{_CATALYST}analysis.UnresolvedAttribute",
        f"{_CATALYST}expressions.AttributeReference",
        f"{_CATALYST}expressions.Literal",
        _RELATION,
    ]
)
_ONLY_READS = "SQL of a form may only read tables, by functions that are listed"
_BUILTIN = (("builtin",), ("system", "builtin"), ())


def refuse_query(spark: SparkSession, text: str) -> None:
    """Raise ``InvalidInputError`` for a statement that holds more than listed nodes, expressions and functions.

    Raises Spark's ``ParseException`` for invalid syntax. Nothing is analysed.
    """
    _refuse(spark, _parsed(_parser(spark).parsePlan, text))


def refuse_expression(spark: SparkSession, text: str) -> None:
    """Raise as ``refuse_query`` for an expression, as of a computed column."""
    _refuse(spark, _parsed(_parser(spark).parseExpression, text))


def _parser(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().sqlParser()  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001  no public way


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except Py4JJavaError as error:
        # The parser refuses scripts, some or (before Spark 4.1) all, by an error for which pyspark has no class.
        message = f"{_ONLY_READS}: a script is not allowed ({error.java_exception.getMessage()})"
        raise InvalidInputError(message) from error


def _refuse(spark: SparkSession, tree: Any) -> None:
    for node, name in _nodes(spark, tree):
        problem = _problem(node, name)
        if problem is not None:
            message = f"{_ONLY_READS}: {problem} is not allowed"
            raise InvalidInputError(message)


def _problem(node: Any, name: str) -> str | None:
    """Return what a node holds that is not listed; None if all is."""
    if name not in _ALLOWED:
        return name.rpartition(".")[2]
    if name == _RELATION:
        return None if node.options().isEmpty() else "a table with options"
    if name in (_NAMES, _TABLE_NAMES):
        parts = node.nameParts() if name == _NAMES else node.name()
        called = tuple(str(parts.apply(index)).lower() for index in range(parts.size()))
    elif name == _GENERATOR:
        identifier = node.name()
        given = [identifier.catalog(), identifier.database()]
        called = (*(str(each.get()).lower() for each in given if each.isDefined()), identifier.funcName().lower())
    else:
        return None
    known = PURE_TABLE_FUNCTIONS if name == _TABLE_NAMES else PURE_FUNCTIONS | OPERATORS
    return None if called[:-1] in _BUILTIN and called[-1] in known else f"function {'.'.join(called)}"


def _count(part: object, node_class: Any, iterable: Any) -> int:
    """Return how many nodes an argument of a node has, at most."""
    if not isinstance(part, JavaObject):
        return 0
    return 1 if node_class.isInstance(part) else int(part.size()) if iterable.isInstance(part) else 1


def _nodes(spark: SparkSession, tree: Any) -> Iterator[tuple[Any, str]]:
    """Yield each node of a tree, wherever another one holds it, with the name of its class."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  Spark offers no other way
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    node_class, iterable, product = (
        jvm.java.lang.Class.forName(name, False, loader)
        for name in (f"{_CATALYST}trees.TreeNode", "scala.collection.Iterable", "scala.Product")
    )
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, JavaObject):
            continue
        if node_class.isInstance(value):
            name = str(value.getClass().getName())
            yield value, name
            if name in _LEAVES:
                continue
            held = value.productIterator()
            parts = [held.next() for _ in range(value.productArity())]
            waiting += parts
            children = value.children()
            if children.size() > sum(_count(each, node_class, iterable) for each in parts):
                # They are not among the arguments of its class.
                waiting += [children.apply(index) for index in range(children.size())]
            continue
        if iterable.isInstance(value):
            held = value.iterator()
        elif product.isInstance(value):
            held = value.productIterator()
        else:
            continue
        while held.hasNext():
            waiting.append(held.next())
