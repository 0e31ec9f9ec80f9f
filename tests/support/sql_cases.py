"""SQL cases in text files: statements, each followed by its expected result.

    -- case: a name in words                 begins a case; every case has a session and an empty warehouse of its own
    CREATE TABLE t (id BIGINT);              a statement ends with a line that ends with a semicolon
    --> table default.t created              a message, a table of rows, or an error; rewritten by --rewrite-sql-cases

Rows are sorted unless the statement contains ORDER BY. Paths and names that change from run to run are masked.
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
    """One statement and its expected result, line by line."""

    statement: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlCase:
    """One case, with its file."""

    file: str
    name: str
    steps: tuple[Step, ...]

    @property
    def id(self) -> str:
        """Test id in pytest."""
        return f"{Path(self.file).stem}: {self.name}"


def load_sql_cases(file: str) -> list[SqlCase]:
    """Return the cases of a file, in order."""
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
    """Parse statements and their expected results. Raise ``ValueError`` if the last one lacks its semicolon."""
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
    """Replace cases in a file, with their new expectations; text before the first case is kept."""
    path = FOLDER / file
    head = path.read_text().partition(_CASE)[0]
    path.write_text(head + "\n".join(_written(case) for case in cases))


def _written(case: SqlCase) -> str:
    return f"{_CASE}{case.name}\n{written_steps(case.steps)}"


def written_steps(steps: Sequence[Step]) -> str:
    """Format steps; the reverse of ``steps_of``."""
    lines = []
    for step in steps:
        lines.append(step.statement)
        lines += [f"{_EXPECTED} {line}".rstrip() for line in step.expected]
    return "\n".join(lines) + "\n"


def result_of(sql: Session, statement: str) -> tuple[str, pa.Table | None]:
    """Return the message and rows of a statement; wait for a stream to end."""
    result = sql.execute(statement)
    try:
        return result.message, result.to_arrow() if result.has_rows else None
    finally:
        if result.stream is not None:
            result.stream.awaitTermination()


def outcome(
    run: Callable[[], tuple[str, pa.Table | None]], *, ordered: bool, errors: tuple[type[Exception], ...]
) -> list[str]:
    """Return the result of a statement as lines."""
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
    """Mask the parts of the lines that change from run to run."""
    text = "\n".join(line.rstrip() for line in lines).replace(warehouse, "<warehouse>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    text = re.sub(r"(last-modified \| )\d.*", r"\1<moment>", text)
    text = re.sub(r"(size \| )\d+", r"\1<bytes>", text)
    return tuple(text.split("\n"))


def steps_given(case: SqlCase, sql: Session, warehouse: str) -> list[Step]:
    """Run the case's statements; return them with their actual results."""
    steps = []
    for step in case.steps:
        ordered = "ORDER BY" in step.statement.upper() or not step.statement.upper().startswith(("SELECT", "WITH"))
        run = partial(result_of, sql, step.statement.replace("<warehouse>", warehouse))
        steps.append(Step(step.statement, masked(outcome(run, ordered=ordered, errors=(StorageError,)), warehouse)))
    return steps


def write_steps_given(case: SqlCase, steps: Sequence[Step]) -> None:
    """Store the actual results of a case as expected."""
    changed = replace(case, steps=tuple(steps))
    write_sql_cases(case.file, [changed if each.name == case.name else each for each in load_sql_cases(case.file)])
