"""Cases of SQL in text files: statements, and under each what it gives.

    -- case: a name in words                 begins a case; every case has a session and an empty warehouse of its own
    CREATE TABLE t (id BIGINT);              ends with a line that ends so
    --> table default.t created              a message, a table of rows, or an error; rewritten by --rewrite-sql-cases

Rows are sorted unless the statement says ORDER BY. Places and names that change from run to run are masked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import StorageError

if TYPE_CHECKING:
    from storage_lib.sql import Session

FOLDER = Path(__file__).parents[1] / "sql" / "cases"
REWRITE = "--rewrite-sql-cases"
_CASE = "-- case: "
_EXPECTED = "-->"


@dataclass(frozen=True, slots=True)
class Step:
    """One statement and what it is expected to give, line by line."""

    statement: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlCase:
    """A case and where it stands."""

    file: str
    name: str
    steps: tuple[Step, ...]

    @property
    def id(self) -> str:
        """What pytest calls it."""
        return f"{Path(self.file).stem}: {self.name}"


def load_sql_cases(file: str) -> list[SqlCase]:
    """The cases of a file, in order."""
    text = (FOLDER / file).read_text()
    chunks = re.split(rf"^{_CASE}", text, flags=re.MULTILINE)[1:]
    return [_case(file, chunk) for chunk in chunks]


def _case(file: str, chunk: str) -> SqlCase:
    name, _, body = chunk.partition("\n")
    try:
        return SqlCase(file, name.strip(), steps_of(body))
    except ValueError as error:
        message = f"{file}: case {name!r}: {error}"
        raise ValueError(message) from error


def steps_of(body: str) -> tuple[Step, ...]:
    """Statements and what stands under each. Raises ``ValueError`` for a last one without its semicolon."""
    steps: list[Step] = []
    statement: list[str] = []
    for line in body.splitlines():
        if line.startswith(_EXPECTED):
            last = steps.pop()
            steps.append(Step(last.statement, (*last.expected, line[len(_EXPECTED) :].removeprefix(" "))))
        elif line.strip():
            statement.append(line)
            if line.endswith(";"):
                steps.append(Step("\n".join(statement), ()))
                statement = []
    if statement:
        message = "it ends within a statement; end it with a semicolon at the end of a line"
        raise ValueError(message)
    return tuple(steps)


def write_sql_cases(file: str, cases: list[SqlCase]) -> None:
    """Put cases back, with what is expected now; what stands before the first case stays."""
    path = FOLDER / file
    head = path.read_text().partition(_CASE)[0]
    path.write_text(head + "\n".join(_written(case) for case in cases))


def _written(case: SqlCase) -> str:
    return f"{_CASE}{case.name}\n{written_steps(case.steps)}"


def written_steps(steps: Sequence[Step]) -> str:
    """What ``steps_of`` reads."""
    lines = []
    for step in steps:
        lines.append(step.statement)
        lines += [f"{_EXPECTED} {line}".rstrip() for line in step.expected]
    return "\n".join(lines) + "\n"


def result_of(sql: Session, statement: str) -> tuple[str, pa.Table | None]:
    """The message and rows of a statement; waits for the end of a stream."""
    result = sql.execute(statement)
    try:
        return result.message, result.to_arrow() if result.has_rows else None
    finally:
        if result.stream is not None:
            result.stream.awaitTermination()


def outcome(
    run: Callable[[], tuple[str, pa.Table | None]], *, ordered: bool, errors: tuple[type[Exception], ...]
) -> list[str]:
    """Result of a statement, as lines."""
    try:
        message, rows = run()
    except errors as error:
        return [
            f"{type(error).__name__}: {line}" if not index else line
            for index, line in enumerate(str(error).split("\n"))
        ]
    if rows is None:
        return [message]
    lines = [" | ".join(_cell(value) for value in row.values()) for row in rows.to_pylist()]
    shown = lines if ordered else sorted(lines)
    return [" | ".join(rows.schema.names), *(part for line in shown for part in line.split("\n"))]


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def masked(lines: list[str], warehouse: str) -> tuple[str, ...]:
    """The lines without what changes from run to run."""
    text = "\n".join(line.rstrip() for line in lines).replace(warehouse, "<warehouse>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    text = re.sub(r"(last-modified \| )\d.*", r"\1<moment>", text)
    text = re.sub(r"(size \| )\d+", r"\1<bytes>", text)
    return tuple(text.split("\n"))


def steps_given(case: SqlCase, sql: Session, warehouse: str) -> list[Step]:
    """The case's statements, run, and what each gave."""
    steps = []
    for step in case.steps:
        ordered = "ORDER BY" in step.statement.upper() or not step.statement.upper().startswith(("SELECT", "WITH"))
        run = partial(result_of, sql, step.statement.replace("<warehouse>", warehouse))
        steps.append(Step(step.statement, masked(outcome(run, ordered=ordered, errors=(StorageError,)), warehouse)))
    return steps


def write_steps_given(case: SqlCase, steps: Sequence[Step]) -> None:
    """Let what was given be what is expected."""
    changed = replace(case, steps=tuple(steps))
    write_sql_cases(case.file, [changed if each.name == case.name else each for each in load_sql_cases(case.file)])
