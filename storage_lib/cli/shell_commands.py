"""Shell commands that are not SQL: ``help``, ``exit``, ``quit``, and words that begin with a dot."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storage_lib.cli.statement_file import statements_in
from storage_lib.errors import InvalidInputError

__all__ = ["HELP", "Leave", "Run", "Show", "Timing", "command_of", "is_command"]

_LEAVE = ("exit", "quit", ".exit", ".quit")
HELP = """\
A statement ends with a semicolon and may have several lines. Tab completes, arrow keys recall.

  .tables [DATABASE]   list the tables             .databases      list the databases
  .schema TABLE        show a table's definition   .read FILE      run the statements of a file
  .timing on|off       show how long queries take  .help           show this text
  .quit                leave, as does Ctrl-D

Statements of tables: CREATE, ALTER, DROP, TRUNCATE, ANALYZE, COMMENT ON, DESCRIBE, SHOW
of rows: SELECT, WITH, VALUES, FROM, INSERT, UPDATE, DELETE, MERGE, EXPLAIN
of the session: USE, SET, RESET, and CALL for maintenance, such as CALL sys.compact('shop.orders')
SHOW OPTIONS lists the options of tables, SHOW OPTIONS LIKE 'log.*' those that begin so."""


@dataclass(frozen=True, slots=True)
class Leave:
    """End the shell."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run statements."""

    script: str


@dataclass(frozen=True, slots=True)
class Show:
    """Print text."""

    text: str


@dataclass(frozen=True, slots=True)
class Timing:
    """Show the time that statements take, or stop showing it."""

    is_on: bool


def is_command(text: str) -> bool:
    """Return whether a line is a shell command, which needs no semicolon."""
    line = _line(text)
    return line.startswith(".") or line.lower() in (*_LEAVE, "help")


def command_of(text: str) -> Leave | Run | Show | Timing | None:
    """Parse a shell command; None for SQL. Raises ``InvalidInputError`` for an unknown command."""
    line = _line(text)
    if not is_command(line):
        return None
    if line.lower() in _LEAVE:
        return Leave()
    try:
        word, *arguments = shlex.split(line)
    except ValueError as error:
        message = f"invalid command {line!r}: {error}"
        raise InvalidInputError(message) from error
    known = _COMMANDS.get((word.lower(), len(arguments)))
    if known is None:
        message = f"unknown command {line!r}\n{HELP}"
        raise InvalidInputError(message)
    return known(*arguments)


def _timing(state: str) -> Timing:
    if state not in ("on", "off"):
        message = f"unknown state {state!r}; use .timing on or .timing off"
        raise InvalidInputError(message)
    return Timing(is_on=state == "on")


def _line(text: str) -> str:
    return text.strip().rstrip(";").strip()


_COMMANDS: dict[tuple[str, int], Callable[..., Run | Show | Timing]] = {
    ("help", 0): lambda: Show(HELP),
    (".help", 0): lambda: Show(HELP),
    (".tables", 0): lambda: Run("SHOW TABLES;"),
    (".tables", 1): lambda database: Run(f"SHOW TABLES FROM {database};"),
    (".databases", 0): lambda: Run("SHOW DATABASES;"),
    (".schema", 1): lambda table: Run(f"SHOW CREATE TABLE {table};"),
    (".read", 1): lambda file: Run(statements_in(Path(file))),
    (".timing", 1): _timing,
}
"""Constructors by the command's name and number of arguments."""
