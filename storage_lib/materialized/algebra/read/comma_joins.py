"""Joins after a comma: ``FROM t, u RIGHT JOIN v`` joins u with v first, as in Spark; sqlglot's tree does not tell."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["first_join_after_comma"]

_SIDES = ("RIGHT", "FULL")


def first_join_after_comma(query: exp.Expr) -> str | None:
    """Return the first join of a query as written that may differ if the tables before its left one are joined first.

    A CROSS JOIN counts as a comma. USING and NATURAL would find columns of those tables.
    """
    for select in query.find_all(exp.Select):
        is_after = False
        for join in select.args.get("joins") or ():
            side, method = (str(join.args.get(part) or "").upper() for part in ("side", "method"))
            if is_after and (side in _SIDES or method or join.args.get("using")):
                return f"{side or method or 'a'} JOIN{' USING' if join.args.get('using') else ''} after a comma"
            is_plain = not (side or method or join.args.get("using"))
            is_after = is_after or (
                is_plain and str(join.args.get("kind") or "").upper() in ("", "CROSS") and _is_true(join)
            )
    return None


def _is_true(join: exp.Join) -> bool:
    condition = join.args.get("on")
    return condition is None or (isinstance(condition, exp.Boolean) and bool(condition.this))
