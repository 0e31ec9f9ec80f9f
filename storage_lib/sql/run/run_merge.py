"""MERGE INTO: join target and source, and apply to each joined row the first clause that matches it.

SELECT clause, target row, new row FROM (target, is_target) FULL JOIN (source, is_source) ON condition
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.spark.types.spark_schema import ROW_POSITION
from storage_lib.sql.query.store_assignment import as_stored
from storage_lib.sql.run.run_changes import append_changes, assignments_of, changed_table, query_of
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.statements.parts import Expression, Target
from storage_lib.sql.statements.row_statements import Merge, MergeClause, MergeDelete, MergeInsert, MergeUpdate
from storage_lib.sql.text.mapped_text import MappedText
from storage_lib.sql.text.query_tables import Query, quoted
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_CLAUSE = "__clause"
_IS_TARGET = "__is_target"
_IS_SOURCE = "__is_source"
_ROW = "__row"


def run_merge(state: SessionState, statement: Merge, source: SourceText) -> Result:
    """Append the changes of all clauses as one commit.

    Raises ``InvalidInputError`` if two rows of the source would change one row of the target.
    """
    table = changed_table(state, statement.target, "MERGE")
    source_columns = _source_columns(state, statement, source)
    rules = [_rule(table, statement.target, clause, source_columns) for clause in statement.clauses]

    @contextmanager
    def rows_of() -> Iterator[DataFrame]:
        joined = query_of(state, _joined(statement, table, rules), source)
        joined.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with errors_in_words(source):
                _refuse_ambiguous(joined, table, statement)
            yield _changes(joined, table, statement)
        finally:
            joined.unpersist()

    return append_changes(state, table, statement.target, rows_of)


def _source_columns(state: SessionState, statement: Merge, source: SourceText) -> list[str]:
    text = MappedText().add("SELECT * FROM ")
    _add_source(text, statement)
    return query_of(state, text, source).columns


def _source_name(statement: Merge) -> str:
    if statement.source_alias is not None:
        return quoted(statement.source_alias)
    if isinstance(statement.source, Query):
        return quoted("source")
    return quoted(statement.source.table.parts[-1])


def _target_name(statement: Merge) -> str:
    return quoted(statement.target.alias or statement.target.table.parts[-1])


def _add_source(text: MappedText, statement: Merge) -> None:
    if isinstance(statement.source, Query):
        text.add("(").add(statement.source.text, statement.source.start).add(")")
        return
    table = statement.source.table
    text.add(".".join(quoted(part) for part in table.parts), table.start)
    if statement.source.hint:
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in statement.source.hint.items())
        text.add(f" /*+ OPTIONS({pairs}) */")


def _rule(
    table: DynamicTable, target: Target, clause: MergeClause, source_columns: list[str]
) -> dict[str, Expression | None]:
    """Return column -> new value for the columns that a clause sets; None: the source's column of that name."""
    names = [field.name for field in table.schema.fields]
    match clause.action:
        case MergeDelete():
            return {}
        case MergeUpdate(assignments=()):
            _refuse_lacking(table, names, source_columns, "UPDATE SET *")
            return {name: None for name in names if name not in table.schema.primary_keys}
        case MergeUpdate(assignments=assignments):
            return dict(assignments_of(table, target, assignments, "MERGE"))
        case MergeInsert(columns=()):
            _refuse_lacking(table, names, source_columns, "INSERT *")
            return dict.fromkeys(names)
        case MergeInsert(columns=columns, values=values):
            by_lower_case = {name.lower(): name for name in names}
            for column in columns:
                if column.lower() not in by_lower_case:
                    message = f"table {table.name} has no column {column!r}{did_you_mean(column, names)}"
                    raise InvalidInputError(message)
            return {by_lower_case[column.lower()]: value for column, value in zip(columns, values, strict=True)}


def _refuse_lacking(table: DynamicTable, names: list[str], source_columns: list[str], what: str) -> None:
    there = {name.lower() for name in source_columns}
    for name in names:
        if name.lower() not in there:
            message = (
                f"table {table.name}: {what} takes all columns from the source, which has no {name!r} but "
                f"{', '.join(source_columns)}; name the columns"
            )
            raise InvalidInputError(message)


def _joined(statement: Merge, table: DynamicTable, rules: list[dict[str, Expression | None]]) -> MappedText:
    """Return the join with the number of the clause that applies, the old row and the new row."""
    target, source = _target_name(statement), _source_name(statement)
    names = [field.name for field in table.schema.fields]
    text = MappedText().add("SELECT * FROM (SELECT ")
    _add_clause_number(text, statement, target, source)
    text.add(f", {target}.{quoted(_ROW)}")
    for index, name in enumerate(names):
        text.add(f", {target}.{quoted(name)} AS {quoted(f'__old_{index}')}, ")
        _add_new_value(text, statement, rules, name, target, source)
        text.add(f" AS {quoted(f'__new_{index}')}")
    text.add(f" FROM (SELECT *, true AS {quoted(_IS_TARGET)}, monotonically_increasing_id() AS {quoted(_ROW)} FROM ")
    text.add(".".join(quoted(part) for part in statement.target.table.parts), statement.target.table.start)
    text.add(f") AS {target} FULL OUTER JOIN (SELECT *, true AS {quoted(_IS_SOURCE)} FROM ")
    _add_source(text, statement)
    text.add(f") AS {source} ON ").add(statement.condition.text, statement.condition.start)
    text.add(f") WHERE {quoted(_CLAUSE)} IS NOT NULL")
    return text


def _add_clause_number(text: MappedText, statement: Merge, target: str, source: str) -> None:
    text.add("CASE")
    for index, clause in enumerate(statement.clauses):
        _add_when(text, clause, target, source)
        text.add(f" THEN {index}")
    text.add(f" END AS {quoted(_CLAUSE)}")


def _add_when(text: MappedText, clause: MergeClause, target: str, source: str) -> None:
    """Add the WHEN of a clause: it applies to the joined rows that no earlier clause has matched."""
    in_target = f"{target}.{quoted(_IS_TARGET)} IS {'NOT ' if clause.matches_target else ''}NULL"
    in_source = f"{source}.{quoted(_IS_SOURCE)} IS {'NOT ' if clause.matches_source else ''}NULL"
    text.add(f" WHEN {in_target} AND {in_source}")
    if clause.condition is not None:
        text.add(" AND (").add(clause.condition.text, clause.condition.start).add(")")


def _add_new_value(
    text: MappedText,
    statement: Merge,
    rules: list[dict[str, Expression | None]],
    name: str,
    target: str,
    source: str,
) -> None:
    """Add the new value of a column: the CASE of the clause number, with values instead of numbers."""
    text.add("CASE")
    for index, clause in enumerate(statement.clauses):
        _add_when(text, clause, target, source)
        text.add(" THEN ")
        if name not in rules[index]:
            text.add("NULL" if isinstance(clause.action, MergeInsert) else f"{target}.{quoted(name)}")
            continue
        value = rules[index][name]
        if value is None:
            text.add(f"{source}.{quoted(name)}")
        else:
            text.add("(").add(value.text, value.start).add(")")
    text.add(" END")


def _refuse_ambiguous(joined: DataFrame, table: DynamicTable, statement: Merge) -> None:
    from pyspark.sql import functions as sql

    changing = [
        index for index, clause in enumerate(statement.clauses) if clause.matches_target and clause.matches_source
    ]
    matched = joined.where(sql.col(_CLAUSE).isin(changing)).groupBy(_ROW).count().where(sql.col("count") > 1)
    if changing and matched.limit(1).count():
        message = (
            f"table {table.name}: MERGE finds several rows of the source for one row of the table, and can't know "
            "which of them counts; make the source's rows unique, or the condition ON narrower"
        )
        raise InvalidInputError(message)


def _changes(joined: DataFrame, table: DynamicTable, statement: Merge) -> DataFrame:
    """Return the changes to append, with their row kinds."""
    from pyspark.sql import functions as sql

    names = [field.name for field in table.schema.fields]
    kind = table.options.row_kind_field
    of_action = {
        action: [index for index, clause in enumerate(statement.clauses) if isinstance(clause.action, action)]
        for action in (MergeUpdate, MergeDelete, MergeInsert)
    }
    updates, deletes = of_action[MergeUpdate], of_action[MergeDelete]

    def old_rows(clauses: list[int], symbol: str) -> DataFrame:
        columns = [sql.col(f"__old_{index}").alias(name) for index, name in enumerate(names)]
        return joined.where(sql.col(_CLAUSE).isin(clauses)).select(*columns, sql.lit(symbol).alias(kind))

    news = joined.where(~sql.col(_CLAUSE).isin(deletes)) if deletes else joined
    symbols = sql.when(sql.col(_CLAUSE).isin(updates), "+U").otherwise("+I")
    new_columns = [sql.col(f"__new_{index}").alias(name) for index, name in enumerate(names)]
    rows = as_stored(news.select(*new_columns, symbols.alias(kind)), table, [*names, kind])
    if deletes:
        rows = old_rows(deletes, "-D").unionByName(rows)
    if updates and not table.schema.primary_keys:
        rows = old_rows(updates, "-U").unionByName(rows)
    if not deletes or ROW_POSITION in names:
        return rows
    # One key may have a deletion and an insertion: positions ensure that the insertion wins after the shuffle.
    return rows.withColumn(ROW_POSITION, sql.when(sql.col(kind).startswith("-"), 0).otherwise(1).cast("bigint"))
