"""Extract names, strings and options from a parse tree as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lark import ParseTree, Token, Tree

from storage_lib.sql.text.source_text import SourceText

Node = Tree[Token]

_ESCAPED = re.compile(r"\\([\\'\"])|(''|\"\")", re.DOTALL)


def trees(tree: Node, *rules: str) -> Iterator[Node]:
    """Yield the children of these rules, in order."""
    return (child for child in tree.children if isinstance(child, Tree) and child.data in rules)


def first(tree: Node, *rules: str) -> Node | None:
    """Return the first child of these rules; None without one."""
    return next(trees(tree, *rules), None)


def one(tree: Node, *rules: str) -> Node:
    """Return the first child of these rules, which the grammar guarantees."""
    return next(trees(tree, *rules))


def has(tree: Node, rule: str) -> bool:
    """Return whether a child of this rule exists."""
    return first(tree, rule) is not None


def tokens(tree: Node, *types: str) -> list[Token]:
    """Return the tokens among the children, of these types or, without types, of any."""
    return [child for child in tree.children if isinstance(child, Token) and (not types or child.type in types)]


def name_of(tree: Node) -> str:
    """Return the text of a ``name``, without back quotes."""
    text = str(tokens(tree)[0])
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def names_of(tree: Node | None) -> tuple[str, ...]:
    """Return the names among the children; empty for None."""
    return () if tree is None else tuple(name_of(each) for each in trees(tree, "name"))


def text_of(token: Token) -> str:
    """Return the content of a quoted string; any other token unchanged."""
    if token[:1] not in ("'", '"'):
        return str(token)
    quote = token[0]

    def letter(match: re.Match[str]) -> str:
        doubled = match[2]
        return match[1] or (doubled if doubled != quote * 2 else quote)

    return _ESCAPED.sub(letter, str(token)[1:-1])


def comment_of(tree: Node, rule: str) -> str | None:
    """Return the text of a comment clause; None without one."""
    found = first(tree, rule)
    return None if found is None else text_of(tokens(one(found, "text"))[0])


def properties_of(source: SourceText, tree: ParseTree) -> dict[str, str]:
    """Return the options in ``('key' = 'value', ...)`` below ``tree``; ``SqlSyntaxError`` for a repeated key."""
    found: dict[str, str] = {}
    for each in tree.find_data("property"):
        key_token = tokens(one(each, "key"))[0]
        key = text_of(key_token)
        if key in found:
            raise source.syntax_error(key_token.start_pos or 0, f"option {key!r} is given twice")
        found[key] = text_of(tokens(each)[0])
    return dict(sorted(found.items()))


def keys_of(tree: Node) -> tuple[str, ...]:
    """Return the keys in ``('key', ...)``."""
    return tuple(text_of(tokens(each)[0]) for each in trees(tree, "key"))


def span_of(tree: Node) -> tuple[int, int]:
    """Return the start and end offsets of a tree; (0, 0) for an empty one."""
    return (0, 0) if tree.meta.empty else (tree.meta.start_pos, tree.meta.end_pos)
