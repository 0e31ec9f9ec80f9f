"""Parsing of statements, without Spark and without a catalog."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import SqlSyntaxError
from storage_lib.sql import is_complete, parse, statements_of
from storage_lib.sql.statements.row_statements import Delete, Insert, Merge, MergeDelete, MergeUpdate, Select
from storage_lib.sql.statements.table_statements import CreateTable
from tests.support.sql_cases import FOLDER, load_sql_cases

STATEMENTS = [
    step.statement
    for pattern in ("*.sql", "without_spark/*.sql")
    for file in sorted(FOLDER.glob(pattern))
    for case in load_sql_cases(file.relative_to(FOLDER).as_posix())
    for step in case.steps
]
PIECES_OF_SQL = """
SELECT FROM WHERE INSERT INTO OVERWRITE t a.b `x_y` ( ) , = 'text' "q" 1 -2.5 * CREATE TABLE IF NOT EXISTS PRIMARY KEY
ENFORCED WITH AS PARTITION PARTITIONED BY MERGE USING ON WHEN MATCHED THEN UPDATE SET DELETE CASE END ALTER ADD COLUMN
DROP COMMENT /*+ OPTIONS('a'='b') */ -- /* ; $ t$snapshots < > ARRAY<INT> VERSION OF 3 TIMESTAMP SHOW DESCRIBE CALL =>
NULL TRUE ' ` \\ é 𝛑
"""
PIECES = st.sampled_from([*PIECES_OF_SQL.split(), "\n"])


def query_of(text: str) -> Select:
    statement = parse(text)
    assert isinstance(statement, Select)
    return statement


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=60))
def test_no_text_raises_anything_but_a_syntax_error(text: str) -> None:
    try:
        parse(text)
        statements_of(text)
    except SqlSyntaxError as error:
        assert str(error).startswith("line ")  # noqa: PT017  most texts are wrong, some are not


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(STATEMENTS), st.data())
def test_no_damaged_statement_raises_anything_but_a_syntax_error(statement: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(statement)))
    end = data.draw(st.integers(start, min(len(statement), start + 8)))
    put = data.draw(PIECES | st.just(""))
    try:
        parse(statement[:start] + put + statement[end:])
    except SqlSyntaxError as error:
        assert "\n" in str(error)  # noqa: PT017  as above


def test_a_statement_is_a_value() -> None:
    text = "CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')"
    statement = parse(text)
    assert isinstance(statement, CreateTable)
    assert pickle.loads(pickle.dumps(statement)) == statement == parse(text)  # noqa: S301  our own bytes
    assert statement.primary_key == ("id",)
    assert statement.options == {"bucket": "2"}


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM a", ["a"]),
        ("SELECT * FROM a.b, `c d`.e AS x JOIN cat.db.t USING (id)", ["a.b", "c d.e", "cat.db.t"]),
        (
            "SELECT (SELECT max(x) FROM b) FROM a WHERE y IN (SELECT y FROM c) AND EXISTS (SELECT 1 FROM d)",
            ["b", "a", "c", "d"],
        ),
        ("WITH a AS (SELECT * FROM b) SELECT * FROM a, db.a", ["b", "db.a"]),
        ("WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a) SELECT * FROM b", ["a"]),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x JOIN a", ["a"]),
        ("SELECT /*+ BROADCAST(a) */ * FROM a, range(3) r LATERAL VIEW explode(a.x) e AS y", ["a"]),
        ("SELECT 'FROM b' AS `FROM c` -- FROM d\n FROM a /* FROM e */", ["a"]),
        ("SELECT * FROM a$snapshots UNION ALL SELECT * FROM `b$files`", ["a$snapshots", "b$files"]),
        ("VALUES (1)", []),
    ],
)
def test_the_tables_of_a_query_are_found(text: str, tables: list[str]) -> None:
    assert [str(each) for each in query_of(text).query.tables] == tables


def test_hints_and_moments_belong_to_the_table_before_them() -> None:
    query = query_of(
        "SELECT * FROM a /*+ OPTIONS('k'='v') */ AS x, b VERSION AS OF 3, c FOR SYSTEM_TIME AS OF now() y"
    ).query
    first, second, third = query.tables
    assert (first.hint, first.alias, first.as_of) == ({"k": "v"}, "x", None)
    assert second.as_of is not None
    assert (second.as_of.is_time, second.as_of.expression) == (False, "3")
    assert third.as_of is not None
    assert (third.as_of.is_time, third.as_of.expression, third.alias) == (True, "now()", "y")


def test_a_column_called_like_a_keyword_is_a_column() -> None:
    statement = parse("CREATE TABLE t (comment STRING COMMENT 'c', key INT, `primary` INT, when BIGINT, first INT)")
    assert isinstance(statement, CreateTable)
    assert [each.name for each in statement.columns] == ["comment", "key", "primary", "when", "first"]


def test_a_condition_is_taken_word_for_word_up_to_its_end() -> None:
    statement = parse(
        "MERGE INTO t USING s ON CASE WHEN t.a = s.a THEN true ELSE false END AND f(t.b, ')') "
        "WHEN MATCHED AND s.x = 'WHEN' THEN DELETE WHEN MATCHED THEN UPDATE SET a = CASE WHEN b THEN 1 END, c = (1, 2)"
    )
    assert isinstance(statement, Merge)
    assert statement.condition.text == "CASE WHEN t.a = s.a THEN true ELSE false END AND f(t.b, ')')"
    delete, update = (clause.action for clause in statement.clauses)
    assert isinstance(delete, MergeDelete)
    assert isinstance(update, MergeUpdate)
    assert [(each.column, each.value.text) for each in update.assignments] == [
        ("a", "CASE WHEN b THEN 1 END"),
        ("c", "(1, 2)"),
    ]
    deletion = parse("DELETE FROM t x WHERE a IN (SELECT b FROM c) -- all\n AND d = 1")
    assert isinstance(deletion, Delete)
    assert deletion.condition is not None
    assert deletion.condition.text.startswith("a IN (SELECT b FROM c)")


def test_an_insert_of_a_query_in_brackets_names_no_columns() -> None:
    bracketed, named = parse("INSERT INTO t (SELECT 1)"), parse("INSERT INTO t (a, b) SELECT 1, 2")
    assert isinstance(bracketed, Insert)
    assert isinstance(named, Insert)
    assert (bracketed.columns, bracketed.query.text) == ((), "(SELECT 1)")
    assert (named.columns, named.query.text) == (("a", "b"), "SELECT 1, 2")


def test_an_error_shows_its_place_in_the_script() -> None:
    script = "SELECT 1;\n\n  -- then\n  SELEC 2;"
    _, second = statements_of(script)
    with pytest.raises(SqlSyntaxError) as raised:
        parse(second.text, first_line=second.first_line)
    assert str(raised.value).startswith("line 4, column 3: ")
    assert str(raised.value).endswith("did you mean SELECT?\n    SELEC 2\n    ^")


def test_a_script_is_cut_at_semicolons_that_end_statements() -> None:
    script = "SELECT ';' AS `;` /* ; */; -- ;\n; SELECT 2 -- the end"
    assert [each.text.strip() for each in statements_of(script)] == [
        "SELECT ';' AS `;` /* ; */".removesuffix(" /* ; */"),
        "SELECT 2",
    ]
    assert is_complete("SELECT 1;")
    assert not is_complete("SELECT 1; SELECT")


def test_parsing_needs_neither_spark_nor_arrow_compute() -> None:
    code = "import sys; from storage_lib.sql import parse; parse('SELECT 1 FROM t'); print('pyspark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
