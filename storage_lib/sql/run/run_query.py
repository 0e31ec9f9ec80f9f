"""SELECT and EXPLAIN."""

from __future__ import annotations

from storage_lib.spark.reading.plan_text import plan_text
from storage_lib.sql.query.query_runner import dataframe_of, rewritten, sql_of
from storage_lib.sql.run.run_insert_stream import ExplainedStream, explained_stream
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import RuntimeMode
from storage_lib.sql.statements.row_statements import Explain, Select
from storage_lib.sql.text.source_text import SourceText


def run_select(state: SessionState, statement: Select, source: SourceText) -> Result:
    """Return the query as a data frame, analysed but not computed."""
    return Result(dataframe=dataframe_of(state, statement.query, source))


def run_explain(state: SessionState, statement: Explain, source: SourceText) -> Result:
    """Return Spark's plan of a query as text; for a streaming INSERT also its additions to the query, with reasons."""
    plan = ExplainedStream("")
    if statement.insert is not None and state.settings.runtime_mode is RuntimeMode.STREAMING:
        plan = explained_stream(state, statement.insert, source)
    texts = [plan.text] if plan.text else []
    if plan.runs_in_spark:
        texts.append(_spark_plan(state, statement, source))
    return Result(rows=rows_of(("plan",), [(text,) for text in texts]))


def _spark_plan(state: SessionState, statement: Explain, source: SourceText) -> str:
    mode = statement.mode.lower() or "simple"
    if state.settings.runtime_mode is RuntimeMode.STREAMING:
        df = dataframe_of(state, statement.query, source, only_plans=True)
        if df.isStreaming:
            return plan_text(df, mode)
    with rewritten(state, statement.query, may_answer=True, only_plans=True) as found:
        if found.batch.answer is not None:
            answer = found.batch.answer
            return "\n".join([plan_text(answer.df, mode).rstrip("\n"), "", "== Files ==", *answer.lines])
        row = sql_of(state, found, source, prefix=f"EXPLAIN {statement.mode} ").first()
    plan = "" if row is None else str(row[0])
    if not found.batch.summaries:
        return plan
    return "\n".join([plan.rstrip("\n"), "", "== Files ==", *map(str, found.batch.summaries)])
