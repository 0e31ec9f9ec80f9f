"""Functions that tell 0.0 from -0.0, which are one value in groups, in keys and in the change of an answer.

A refresh ignores a change from one to the other, so a text made of the number would stay the old one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from storage_lib.materialized.algebra.derive.maintenance import written
from storage_lib.materialized.algebra.read.scope import type_of
from storage_lib.materialized.algebra.tree.expressions import replaced
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    TopRows,
    Union,
    Window,
    inputs_of,
)

if TYPE_CHECKING:
    from storage_lib.materialized.algebra.query_sources import SourceTable

__all__ = ["first_zero_sign_reader"]

_FLOATING = re.compile(r"\b(float|double|real)\b", re.IGNORECASE)
_CHOOSE = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Nvl2, exp.Greatest, exp.Least)
"""Return one of their arguments, or a text if one of them is a text."""
_KEEP_KIND = (
    *_CHOOSE,
    exp.Abs,
    exp.Add,
    exp.Array,
    exp.Bracket,
    exp.Max,
    exp.Min,
    exp.Mod,
    exp.Mul,
    exp.Paren,
    exp.Round,
    exp.Struct,
    exp.Sub,
    exp.Sum,
    exp.Unary,
)
"""Return FLOAT or DOUBLE only for arguments of these types. To Spark, 1.5 is a DECIMAL."""
_BLIND = (
    *_KEEP_KIND,
    exp.AggFunc,
    exp.Between,
    exp.Binary,
    exp.Connector,
    exp.Distinct,
    exp.Filter,
    exp.In,
    exp.Order,
    exp.Ordered,
    exp.Tuple,
    exp.Where,
    exp.Window,
    exp.WithinGroup,
)
"""Return equal values for 0.0 and -0.0."""
_BLIND_FUNCTIONS = frozenset([
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bround", "cbrt", "ceil", "ceiling", "cos", "cosh", "degrees",
    "equal_null", "exp", "expm1", "floor", "is_nan", "isnan", "isnotnull", "isnull", "ln", "log", "log10", "log1p",
    "log2", "nanvl", "negative", "pmod", "positive", "radians", "rint", "safe_divide", "sign", "signum", "sin", "sinh",
    "sqrt", "tan", "tanh", "try_add", "try_divide", "try_mod", "try_multiply", "try_subtract", "width_bucket",
])  # fmt: skip
_TELLING = (exp.DPipe, exp.Like, exp.ILike, exp.RegexpLike, exp.SimilarTo)
"""Operators that do not, though sqlglot counts them among ``_BLIND``."""


def first_zero_sign_reader(tree: Relation, sources: Mapping[str, SourceTable]) -> str | None:
    """Return the text of an expression of ``tree`` that can tell 0.0 from -0.0; None if there is none."""
    return _Search(sources).of(tree)


class _Search:
    """``floating``: the columns, found so far, of types that are or hold FLOAT or DOUBLE."""

    def __init__(self, sources: Mapping[str, SourceTable]) -> None:
        self._sources = sources
        self._floating: set[str] = set()

    def of(self, relation: Relation) -> str | None:
        for each in inputs_of(relation):
            found = self.of(each)
            if found is not None:
                return found
        for value in _expressions(relation):
            for node in value.walk():
                if self._tells(node):
                    return replaced(node, written(relation)).sql("spark")
        self._add_outputs(relation)
        return None

    def _add_outputs(self, relation: Relation) -> None:
        match relation:
            case Scan():
                kinds = {name.lower(): kind for name, kind in self._sources[relation.table].columns}
                self._floating |= {own for name, own in relation.columns if _FLOATING.search(kinds[name.lower()])}
            case Project() | Aggregate() | Window():
                self._floating |= {name for name, value in relation.items if self._is_floating(value)}
            case Union():
                for each in relation.inputs:
                    pairs = zip(relation.outputs, each.outputs, strict=True)
                    self._floating |= {name for name, own in pairs if own in self._floating}
            case _:
                pass

    def _tells(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Condition | exp.Func) or isinstance(node, exp.Column | exp.Literal):
            return False
        arguments = list(node.iter_expressions())
        if not any(self._is_floating(each) for each in arguments):
            return False
        if isinstance(node, exp.Cast):
            # Numbers, dates and the like are the same for both zeros.
            kinds = node.to.find_all(exp.DataType)
            return any(each.is_type(*exp.DataType.TEXT_TYPES, exp.DataType.Type.BINARY) for each in kinds)
        if isinstance(node, (*_CHOOSE, exp.In, exp.Array)):
            # Without ANSI mode, numbers that are compared or mixed with a text become texts.
            chosen = _chosen(node)
            return any(map(_is_text, chosen)) and any(map(self._is_floating, chosen))
        if isinstance(node, exp.Pow):
            return not isinstance(node.expression.unnest(), exp.Literal)  # of both zeros, negative ones differ
        if isinstance(node, exp.Func) and _name(node) in _BLIND_FUNCTIONS:
            return False
        return isinstance(node, _TELLING) or not isinstance(node, _BLIND)

    def _is_floating(self, value: exp.Expr) -> bool:
        if isinstance(value, exp.Column):
            return value.name in self._floating
        if isinstance(value, exp.Add) and any(_is_zero(side) for side in (value.this, value.expression)):
            return False  # -0.0 + 0.0 is 0.0
        if isinstance(value, exp.Literal | exp.DataType):
            return False
        if _is_never_negative_zero(value):
            return False
        kind = None if isinstance(value, _KEEP_KIND) else type_of(value)
        if kind is not None and not kind.is_type(exp.DataType.Type.UNKNOWN):
            return _FLOATING.search(kind.sql("spark")) is not None
        return any(self._is_floating(each) for each in value.iter_expressions())


def _name(function: exp.Func) -> str:
    return str(function.this if isinstance(function, exp.Anonymous) else function.sql_name()).lower()


def _chosen(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of which one may be the value; for IN, those that are compared."""
    if isinstance(node, exp.Case):
        return [*(each.args["true"] for each in node.args["ifs"]), *filter(None, [node.args.get("default")])]
    if isinstance(node, exp.If | exp.Nvl2):
        return [each for each in (node.args.get("true"), node.args.get("false")) if each is not None]
    return list(node.iter_expressions())


def _is_text(value: exp.Expr) -> bool:
    kind = type_of(value)
    return kind is not None and kind.is_type(*exp.DataType.TEXT_TYPES)


def _is_never_negative_zero(value: exp.Expr) -> bool:
    """Return whether a number is computed from whole numbers and decimals in a way that never gives -0.0."""
    if isinstance(value, exp.Cast | exp.Avg):
        return _is_exact(value.this)
    if isinstance(value, exp.Div):
        divisor = value.expression.unnest()
        return _is_exact(value.this) and isinstance(divisor, exp.Literal) and not divisor.is_string
    return False


def _is_exact(value: exp.Expr) -> bool:
    kind = type_of(value.unnest())
    return kind is not None and kind.is_type(*exp.DataType.INTEGER_TYPES, exp.DataType.Type.DECIMAL)


def _is_zero(value: exp.Expr) -> bool:
    bare = value.unnest()
    return isinstance(bare, exp.Literal) and not bare.is_string and float(bare.this) == 0


def _expressions(relation: Relation) -> Iterator[exp.Expr]:
    match relation:
        case Project() | Aggregate() | Window():
            yield from (value for _, value in relation.items)
        case Filter() | SemiJoin() | OuterJoin():
            yield relation.condition
        case InnerJoin():
            yield from relation.conditions
        case TopRows():
            yield from relation.order
        case _:
            return
