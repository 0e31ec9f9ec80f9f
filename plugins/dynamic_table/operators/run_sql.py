"""Runs SQL statements over the tables of a connection."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import checked_count, checked_options, checked_text
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.table_operator import CatalogOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.policies.spark_settings import checked_master, checked_spark_conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib.sql import Result, Session

__all__ = ["SqlOperator"]


class SqlOperator(CatalogOperator):
    """Runs statements in order, in one session with its own Spark; stops at the first error.

    INSERT, DELETE, UPDATE and MERGE commit exactly once: a retry runs all statements again and skips those that were
    committed before. Write IF [NOT] EXISTS in statements that create or drop something. The task waits for a stream
    that a statement starts; for streams that never end use StreamSinkOperator.

    :param sql: a statement, several separated by semicolons, a list of them, or the name of a ``.sql`` file.
        (templated)
    :param database: the database of names without one. (templated)
    :param settings: settings to SET before the first statement. (templated)
    :param max_rows: maximum number of rows of the last statement in the result. (templated)
    :param master: Spark's master; has to be allowed (``spark_settings``). None: the connection's master, or else all
        of the worker's cores. (templated)
    :param spark_conf: Spark settings; each has to be allowed (``spark_settings``). (templated)
    """

    template_fields: Sequence[str] = ("sql", "database", "settings", "max_rows", "master", "spark_conf")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql", "settings": "json", "spark_conf": "json"}
    ui_color = "#dde8f4"

    def __init__(
        self,
        *,
        sql: str | Sequence[str],
        database: str = "default",
        settings: Mapping[str, Any] | str | None = None,
        max_rows: int | str = 100,
        master: str | None = None,
        spark_conf: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql: Any = sql
        self.database = database
        self.settings: Any = settings
        self.max_rows = max_rows
        self.master = master
        self.spark_conf: Any = spark_conf

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the statements and return the result of each, and the first rows of the last."""
        from storage_lib.sql import parse, statements_of

        text = self._text()
        max_rows = checked_count(self.max_rows, "max_rows")
        statements = statements_of(text)
        for each in statements:
            # Check before Spark starts, which takes seconds.
            parse(each.text, first_line=each.first_line)
        done: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] = []
        with commit_identity(context) as identity, progress_in_log(self.log), self._session() as session:
            for key, value in checked_options(self.settings, "settings").items():
                session.execute(f"SET {_quoted(key)} = {_quoted(value)}")
            for part, each in enumerate(statements):
                self.log.info("Running:\n%s", _shown(each.text))
                result = session.execute(each.text, **identity.arguments(part))
                facts, rows = _answer(result, max_rows)
                self.log.info("%s", facts)
                done.append(facts)
        return {"op": "sql", "statements": done, "row_count": done[-1]["row_count"] if done else None, "rows": rows}

    def _text(self) -> str:
        given = self.sql
        if isinstance(given, str):
            return checked_text(given, "sql")
        return ";\n".join(checked_text(each, "sql") for each in given)

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Yield the task's session; at its end, stop Spark unless Spark was running before."""
        from pyspark.sql import SparkSession

        from storage_lib.spark import session as spark_session
        from storage_lib.sql import Session

        was_here = SparkSession.getActiveSession() is not None
        conf = {"spark.ui.enabled": "false", **checked_spark_conf(self.spark_conf)}
        master = checked_master(self.master, self.hook) or "local[*]"
        spark = spark_session(f"airflow {self.task_id}", master=master, conf=conf)
        try:
            with Session(spark, self.hook.get_conn(), database=checked_text(self.database, "database")) as session:
                yield session
        finally:
            if not was_here:
                spark.stop()


def _answer(result: Result, max_rows: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a summary of a statement's result, and its first rows as JSON values."""
    if result.stream is not None:
        result.stream.awaitTermination()
    facts: dict[str, Any] = {
        "message": result.message,
        "snapshot": result.snapshot_id,
        "row_count": result.row_count,
    }
    if not result.has_rows:
        return facts, []
    rows = result.to_arrow()
    facts["row_count"] = rows.num_rows
    return facts, json.loads(json.dumps(rows.slice(0, max_rows).to_pylist(), default=str))


def _shown(text: str) -> str:
    """Return the statement's text for the log, hidden if it may contain a secret."""
    from storage_lib.schema.options.table_options import names_a_secret

    return "(not shown, because it may contain a secret)" if names_a_secret(text) else text.strip()


def _quoted(text: str) -> str:
    """Return the value as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
