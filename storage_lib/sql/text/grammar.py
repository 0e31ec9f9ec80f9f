"""Parse text by ``grammar.lark`` into trees, with readable syntax errors."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark, ParseTree, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from storage_lib.schema.options.nearest import nearest
from storage_lib.sql.text.source_text import SourceText

START_STATEMENT = "start"
START_HINT = "hint_only"
START_PIECES = "pieces"
START_SCRIPT = "script"

_WORDS = {
    "$END": "the end",
    "BACKQUOTE": "`",
    "CASE": "an expression",
    "COLON": ":",
    "COMMA": "','",
    "DOT": "'.'",
    "EQUAL": "'='",
    "HINT": "a hint /*+ OPTIONS(...) */",
    "KEY": "an option's key",
    "LESSTHAN": "<",
    "LPAR": "'('",
    "MORETHAN": ">",
    "NOT_ENFORCED": "NOT ENFORCED",
    "NUMBER": "a number",
    "PIECE": "an expression",
    "QUOTED": "a name",
    "RPAR": "')'",
    "SEMICOLON": "';'",
    "SETTING_KEY": "a setting's key",
    "SETTING_VALUE": "a value",
    "SIGNED_NUMBER": "a number",
    "STAR": "*",
    "STRING": "a quoted text",
    "WORD": "a name",
    "EXTENDED": "EXTENDED or FORMATTED",
    "EXPLAIN_MODE": "EXTENDED, FORMATTED, COST or CODEGEN",
    "LIKE_ACTION": "INCLUDING or EXCLUDING",
    "LIKE_FEATURE": "ALL, OPTIONS, CONSTRAINTS, PARTITIONS, GENERATED or WATERMARKS",
    "DROP_MODE": "CASCADE or RESTRICT",
}
_OF_EXPRESSIONS = frozenset({"PIECE", "CASE", "WHEN", "THEN", "END", "SELECT", "WITH", "VALUES", "FROM", "WHERE"})
_SHOWN_MAX = 30


def parse_tree(source: SourceText, start: str = START_STATEMENT, *, text: str | None = None) -> ParseTree:
    """Parse a text. Raises ``SqlSyntaxError`` with the position and the expected tokens.

    ``text`` is parsed instead of the whole source; its offsets are those of the source.
    """
    try:
        return _grammar().parse(source.text if text is None else text, start=start)
    except UnexpectedInput as error:
        raise _syntax_error(source, error, source.text if text is None else text) from None


@cache
def _grammar() -> Lark:
    text = files("storage_lib.sql.text").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
        start=[START_STATEMENT, START_HINT, START_PIECES, START_SCRIPT],
    )


def _syntax_error(source: SourceText, error: UnexpectedInput, text: str) -> Exception:
    if not isinstance(error, UnexpectedToken):
        offset = error.pos_in_stream or 0  # type: ignore[redundant-expr]  # annotated as None, set to a number
        return source.syntax_error(offset, _problem_at(source.text, offset, error))
    token: Token = error.token
    if token.type == "$END":
        offset = len(text.rstrip())
        return source.syntax_error(offset, f"the statement ends where {_expected(error)} was expected")
    problem = f"expected {_expected(error)}, found {_shown(str(token))}{_meant(str(token), error)}"
    return source.syntax_error(token.start_pos or 0, problem)


def _problem_at(text: str, offset: int, error: UnexpectedInput) -> str:
    unfinished = _unfinished(text[offset : offset + 2])
    if unfinished is not None:
        return unfinished
    found = _word_at(text, offset)
    return f"expected {_expected(error)}, found {_shown(found)}{_meant(found, error)}"


def _unfinished(letters: str) -> str | None:
    if letters[:1] in ("'", '"'):
        return f"the text that begins here has no closing {letters[:1]}"
    if letters[:1] == "`":
        return "the name that begins here has no closing `"
    return "the comment that begins here has no closing */" if letters == "/*" else None


def _word_at(text: str, offset: int) -> str:
    end = offset
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[offset : max(end, offset + 1)]


def _meant(found: str, error: UnexpectedInput) -> str:
    """Return a suggestion of the nearest expected keyword; empty if none is similar."""
    keywords = [name for name in _names(error) if name not in _WORDS]
    near = nearest(found, keywords, like_enough=0.75)
    return f"; did you mean {near}?" if near else ""


def _names(error: UnexpectedInput) -> set[str]:
    if isinstance(error, UnexpectedToken):
        return {str(name) for name in error.accepts or error.expected}
    return set(error.allowed or ()) if isinstance(error, UnexpectedCharacters) else set()


def _expected(error: UnexpectedInput) -> str:
    names = _names(error)
    if "PIECE" in names:
        names -= _OF_EXPRESSIONS - {"PIECE"}
    words = sorted({_WORDS.get(name, name) for name in names if not name.startswith("_") and name not in _IGNORED})
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "something else"


_IGNORED = frozenset({"COMMENT_TEXT", "WHITESPACE"})


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}...")
