"""Conditions of Spark SQL without parentheses, over all its operators, and their trees with all parentheses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from random import Random

from sqlglot import exp

__all__ = ["bracketed", "in_one_spelling", "pairs", "random_texts"]

BINARY = [
    *("*", "/", "%", "DIV", "+", "-", "||", "<<", ">>", "&", "^", "|"),
    *("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "AND", "OR"),
]
PREDICATES = [
    *("IN ({}, {})", "NOT IN ({})", "BETWEEN {} AND {}", "NOT BETWEEN {} AND {}", "LIKE {}", "NOT LIKE {}"),
    *("ILIKE {}", "NOT ILIKE {}", "RLIKE {}", "NOT RLIKE {}", "REGEXP {}", "LIKE {} ESCAPE '/'"),
    *("LIKE ANY ({}, {})", "NOT LIKE ALL ({})", "IS DISTINCT FROM {}", "IS NOT DISTINCT FROM {}"),
]
POSTFIX = ["::STRING", " COLLATE UTF8_LCASE", "[0]", ".f", " IS NULL", " IS NOT NULL", " IS TRUE", " IS NOT FALSE"]
PREFIX = ["-", "+", "~", "NOT", "!"]
ATOMS = [
    *("a", "b", "t.d", "1", "-2", "3.5", "'x'", "f(a)", "INTERVAL 1 DAY", "INTERVAL 1 DAY 2 HOURS"),
    *("DATE '2024-01-01'", "CASE WHEN a THEN b END", "TRUE", "NULL", "2L", "1.5BD", "-3L"),
]
_NAMES = "cdeghi"
_SPELLINGS = {
    "'positive(": "positive(",
    "cast(2024-01-01 as date)": "2024-01-01",
    "cast(2 as bigint)": "2",
    "cast(3 as bigint)": "3",
    "cast(1.5 as decimal(2,1))": "1.5",
    "interval '1 02' day to hour": "(interval '1' day + interval '02' hour)",
    "'02'": "'2'",
    "isnotnull(": "not isnull(",
}
_POSITIVE = re.compile(r"positive\((\d[\d.]*)\)")
_OPERATORS = (
    *(exp.Binary, exp.Unary, exp.In, exp.Between, exp.Cast, exp.Collate, exp.Bracket, exp.Escape, exp.Predicate),
)
_NOT_BRACKETED = (exp.Paren, exp.Any, exp.All)


def pairs() -> Iterator[str]:
    """Yield conditions with each pair of operators, the second one after the first and inside its last operand."""
    for first, second in product([*BINARY, *PREDICATES, *POSTFIX, *PREFIX], repeat=2):
        names = iter(_NAMES)
        yield _with(second, _with(first, "a", names), names)
        names = iter(_NAMES)
        if first in BINARY:
            yield f"a {first} {_with(second, 'b', names)}"
        elif first in PREDICATES:
            others = [next(names) for _ in range(first.count("{}") - 1)]
            yield f"a {first.format(*others, _with(second, 'b', names))}"


def random_texts(seed: int, count: int) -> Iterator[str]:
    """Yield conditions of two to six operators."""
    chance = Random(seed)  # noqa: S311  a seeded test
    for _ in range(count):
        text = chance.choice(ATOMS)
        for _ in range(chance.randint(2, 6)):
            operator = chance.choice(chance.choice([BINARY, BINARY, PREDICATES, POSTFIX, PREFIX]))
            text = _with(operator, text, _random_operands(chance))
            text = f"({text})" if chance.random() < 0.1 else text
        yield text


def _random_operands(chance: Random) -> Iterator[str]:
    while True:
        yield (f"{chance.choice(PREFIX[:3])} " if chance.random() < 0.15 else "") + chance.choice(ATOMS)


def _with(operator: str, left: str, operands: Iterator[str]) -> str:
    if operator in BINARY:
        return f"{left} {operator} {next(operands)}"
    if operator in PREDICATES:
        return f"{left} {operator.format(*(next(operands) for _ in range(operator.count('{}'))))}"
    # A dot after a number is part of it.
    return (
        f"{operator} {left}" if operator in PREFIX else f"({left}){operator}" if left[-1].isdigit() else left + operator
    )


def bracketed(tree: exp.Expr) -> exp.Expr:
    """Return a tree whose operands are in parentheses: its text has one reading."""
    copied = tree.copy()
    _bracket(copied)
    return copied


def _bracket(node: exp.Expr) -> None:
    for below in list(node.iter_expressions()):
        _bracket(below)
        is_name = isinstance(node, exp.Collate) and below is node.expression
        # Spark balances long chains of AND, and of OR.
        is_chain = isinstance(node, exp.Connector) and type(below) is type(node)
        is_bare = isinstance(node, exp.Paren | exp.Escape) or isinstance(below, _NOT_BRACKETED) or is_name or is_chain
        if isinstance(below, _OPERATORS) and not is_bare:
            below.replace(exp.paren(below.copy(), copy=False))


def in_one_spelling(text: str) -> str:
    """Return Spark's text of an expression with literals and names spelled in one way."""
    text = text.lower()
    for spelled, other in _SPELLINGS.items():
        text = text.replace(spelled, other)
    return _POSITIVE.sub(r"\1", text)
