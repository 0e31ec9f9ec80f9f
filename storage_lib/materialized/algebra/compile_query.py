"""Compile SQL text into statements that maintain its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra.compiled_query import CompiledQuery
from storage_lib.materialized.algebra.derive.column_types import column_types
from storage_lib.materialized.algebra.derive.exactness import first_inexact
from storage_lib.materialized.algebra.derive.groups import regrouped
from storage_lib.materialized.algebra.derive.keys import key_of, never_null
from storage_lib.materialized.algebra.derive.maintenance import MaintainedOperator, maintained
from storage_lib.materialized.algebra.derive.pruned import pruned
from storage_lib.materialized.algebra.derive.zero_signs import first_zero_sign_reader
from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.query_sources import SourceTable
from storage_lib.materialized.algebra.read.comma_joins import first_join_after_comma
from storage_lib.materialized.algebra.read.functions import (
    first_generator,
    first_sized_literal,
    first_unknown,
    first_volatile,
)
from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.query_reader import Answer
from storage_lib.materialized.algebra.read.reader import Reader
from storage_lib.materialized.algebra.read.scope import place_of
from storage_lib.materialized.algebra.read.table_names import NamedTables, parsed, read_table_names
from storage_lib.materialized.algebra.tree.relational_operators import Relation, Scan, inputs_of

__all__ = ["ResolvedQuery", "compile_query", "resolve_query"]


def compile_query(
    text: str, sources: Sequence[SourceTable], *, database: str, has_names: bool = True, refusal: str | None = None
) -> CompiledQuery:
    """Compile a query of Spark SQL over tables; names without a database are of ``database``.

    Without ``has_names``, the columns of the answer are found by position, and called ``column1`` and so on.
    ``refusal``: why only Spark knows what the text means, so that the whole answer has to be computed.

    Raises ``InvalidInputError``, with line and column, if the text is not a query, or names a table that is not among
    ``sources``, a column that does not exist or is ambiguous, or two result columns of one name.
    """
    query = resolve_query(text, sources, database=database, has_names=has_names)
    volatile = first_volatile(query.written)
    used, labels = query.used, query.labels
    tree, reason = (None, refusal) if refusal is not None else _tree(query, volatile)
    return CompiledQuery(
        tables=query.tables,
        sources=tuple(used),
        needed=_needed(tree, used),
        columns=labels,
        key=_key(tree, labels, used),
        operators=(MaintainedOperator("query", "", "full", str(reason)),) if tree is None else maintained(tree),
        reason=reason,
        is_deterministic=volatile is None,
        has_star=_has_star(query.written),
        tree=tree,
        types={} if tree is None else column_types(tree, used),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuery:
    """A query whose columns all have a table.

    ``tables`` are the places of the tables' names in the text, ``written`` is the query as written, ``resolved`` the
    one with qualified names, ``used`` are the sources that it reads and ``labels`` the names of the answer's columns.
    """

    tables: NamedTables
    written: exp.Query
    resolved: exp.Expr
    used: Mapping[str, SourceTable]
    labels: tuple[str, ...]


def resolve_query(text: str, sources: Sequence[SourceTable], *, database: str, has_names: bool = True) -> ResolvedQuery:
    """Find the table of each column; raises as ``compile_query``."""
    tables = read_table_names(text, database=database)
    by_name = {each.name.lower(): each for each in sources}
    used = {}
    for start, _, name, _ in tables.places:
        if name.lower() not in by_name:
            raise InvalidInputError(f"{_place(text, start)}there is no table {name}")
        used[by_name[name.lower()].name] = by_name[name.lower()]
    written = parsed(text)
    resolved = _resolved(text, written, used, database)
    labels = _labels(written, resolved, used) if has_names else _numbered(resolved)
    return ResolvedQuery(tables=tables, written=written, resolved=resolved, used=used, labels=labels)


def _tree(query: ResolvedQuery, volatile: str | None) -> tuple[Relation | None, str | None]:
    """Return the tree of a query; if there is none, why only its whole answer can be computed."""
    used = query.used
    if volatile is not None:
        return None, f"{volatile} differs from run to run"
    join = first_join_after_comma(query.written)
    if join is not None:
        return None, f"{join} has no rule; write a sub-query"
    try:
        answer = _read(query.resolved, used)
    except NotIncrementalError as error:
        return None, str(error)
    tree = pruned(answer.relation, frozenset(answer.relation.outputs))
    top = regrouped(tree)
    inexact = first_inexact(tree, None if top is None else top[0])
    if inexact is not None:
        return None, (
            f"{inexact} may differ in its last digits from run to run, and its groups are not all columns of the"
            " answer; cast its argument to DECIMAL"
        )
    telling = first_zero_sign_reader(tree, used)
    if telling is not None:
        return None, f"{telling} tells 0.0 from -0.0, which a refresh takes for one value; add 0.0 to the number"
    return tree, None


def _has_star(written: exp.Expr) -> bool:
    """Return whether a query reads columns that it does not name: by ``*``, a NATURAL JOIN, or FROM without SELECT."""
    if any(not isinstance(star.parent, exp.Count) for star in written.find_all(exp.Star)):
        return True
    if any(join.args.get("method") for join in written.find_all(exp.Join)):
        return True
    return any(not select.expressions for select in written.find_all(exp.Select))


def _resolved(text: str, written: exp.Query, sources: Mapping[str, SourceTable], database: str) -> exp.Expr:
    schema: dict[str, object] = {}
    for source in sources.values():
        names = [name.lower() for name, _ in source.columns]
        if len(set(names)) != len(names):
            raise InvalidInputError(
                f"{source.name} has columns that differ only in case; such a table cannot be queried"
            )
        within, _, table = source.name.rpartition(".")
        columns = {name.lower(): kind.upper().removesuffix(" NOT NULL") for name, kind in source.columns}
        schema.setdefault(within.lower(), {})[table.lower()] = columns  # type: ignore[index]
    try:
        resolved = qualify(
            _with_catalogs_as_databases(written),
            dialect="spark",
            db=database,
            schema=schema,
            quote_identifiers=False,
            identify=False,
            sql=text,
        )
        return annotate_types(resolved, schema=schema, dialect="spark")
    except OptimizeError as error:
        raise InvalidInputError(_in_words(str(error), written, list(sources.values()))) from None
    except (SqlglotError, RecursionError) as error:
        raise InvalidInputError(f"the query cannot be resolved: {str(error)[:300]}") from None


def _with_catalogs_as_databases(written: exp.Query) -> exp.Query:
    """Return a copy in which a table of a catalog is one of a database ``catalog.database``."""
    query = written.copy()
    for table in query.find_all(exp.Table):
        if table.catalog:
            within = exp.to_identifier(f"{table.catalog}.{table.db}", quoted=True)
            within.meta.update(table.args["catalog"].meta)
            table.set("db", within)
            table.set("catalog", None)
    return query


_UNRESOLVED = re.compile(r"(?:Column '(?P<column>[^']*)' could not be resolved|Unknown column: (?P<unknown>\S+))")


def _in_words(message: str, written: exp.Expr, sources: Sequence[SourceTable]) -> str:
    found = _UNRESOLVED.match(message)
    if found is None:
        return message.split("\n", maxsplit=1)[0]
    name = (found["column"] or found["unknown"]).rpartition(".")[2].lower()
    columns = [each for each in written.find_all(exp.Column) if each.name.lower() == name]
    # A column with a qualifier is never ambiguous.
    column = next((each for each in columns if not each.table), columns[0] if columns else None)
    text = name if column is None else column.sql("spark")
    place = "" if column is None else place_of(column.this)
    holders = [each.name for each in sources if any(own.lower() == name for own, _ in each.columns)]
    if len(holders) > 1:
        return f"{place}column {text} is ambiguous: it is in {', '.join(holders)}; qualify it with an alias"
    return f"{place}there is no column {text}"


def _read(resolved: exp.Expr, used: Mapping[str, SourceTable]) -> Answer:
    unknown = first_unknown(resolved)
    if unknown is not None:
        raise NotIncrementalError(f"it is not known whether {unknown} depends on its arguments only")
    generator = first_generator(resolved)
    if generator is not None:
        raise NotIncrementalError(f"there is no rule for {generator}")
    if resolved.find(exp.Collate) or any(each.args.get("collate") for each in resolved.find_all(exp.DataType)):
        raise NotIncrementalError("there is no rule for COLLATE, by which different texts are equal")
    by_name = {}
    for source in used.values():
        within, _, table = source.name.rpartition(".")
        by_name[within.lower(), table.lower()] = source
    literal = first_sized_literal(resolved)
    if literal is not None:
        raise NotIncrementalError(
            f"computed with a decimal, {literal} would not have the type that Spark gives it; write it without a suffix"
        )
    answer = Reader(by_name, Names()).read(resolved)
    if answer.correlated:
        raise NotIncrementalError("a condition reads a column that is not in sight")
    return answer


def _labels(written: exp.Query, resolved: exp.Expr, used: Mapping[str, SourceTable]) -> tuple[str, ...]:
    """Return the answer's column names, as they are written where they are written."""
    first, names = _first_select(written), _first_select(resolved)
    labels = [each.alias_or_name for each in names.expressions]
    own = [each.alias_or_name if isinstance(each, exp.Alias | exp.Column) else "" for each in first.expressions]
    is_written = len(own) == len(labels) and not any(each.is_star for each in first.expressions)
    if is_written:
        labels = [mine if mine.lower() == label.lower() else label for mine, label in zip(own, labels, strict=True)]
    else:
        spelled = {name.lower(): name for source in used.values() for name, _ in source.columns}
        labels = [spelled.get(label, label) for label in labels]
    seen = set()
    for number, label in enumerate(labels):
        if label.lower() in seen:
            raise InvalidInputError(f"two columns of the result are called {label}; give one of them another alias")
        if is_written and not own[number]:
            raise InvalidInputError(f"column {number + 1} of the result has no name; give it one with AS")
        seen.add(label.lower())
    return tuple(labels)


def _numbered(resolved: exp.Expr) -> tuple[str, ...]:
    return tuple(f"column{number + 1}" for number, _ in enumerate(_first_select(resolved).expressions))


def _first_select(query: exp.Expr) -> exp.Expr:
    """Return the SELECT that names the columns of a query."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query


def _needed(tree: Relation | None, used: Mapping[str, SourceTable]) -> dict[str, tuple[str, ...]]:
    if tree is None:
        return {name: tuple(own for own, _ in source.columns) for name, source in used.items()}
    read: dict[str, set[str]] = {name: set() for name in used}
    for scan in _scans(tree):
        read[scan.table].update(own for own, _ in scan.columns)
    return {name: tuple(own for own, _ in source.columns if own in read[name]) for name, source in used.items()}


def _scans(tree: Relation) -> list[Scan]:
    return [tree] if isinstance(tree, Scan) else [scan for each in inputs_of(tree) for scan in _scans(each)]


def _key(tree: Relation | None, labels: Sequence[str], used: Mapping[str, SourceTable]) -> tuple[str, ...] | None:
    if tree is None:
        return None
    key = key_of(tree, used)
    if not key or not key <= never_null(tree, used):
        return None
    return tuple(label for label, name in zip(labels, tree.outputs, strict=True) if name in key)


def _place(text: str, offset: int) -> str:
    line = text.count("\n", 0, offset) + 1
    return f"line {line}, column {offset - (text.rfind(chr(10), 0, offset) + 1) + 1}: "
