"""Interactive shell of ``dynamic-table sql``, with history, completion and multi-line statements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from pygments.lexers.sql import SqlLexer

from storage_lib import Catalog
from storage_lib.cli.output import note
from storage_lib.cli.shell_commands import Leave, Run, Show, Timing, command_of, is_command
from storage_lib.cli.sql_completion import StatementCompleter
from storage_lib.cli.sql_output import ResultPrinter
from storage_lib.errors import InvalidInputError, SqlSyntaxError, StorageError
from storage_lib.schema.options.table_options import names_a_secret
from storage_lib.sql import Result, is_complete

_GREETING = "type a statement and a semicolon, .help for help, or .quit"


class Statements(Protocol):
    """Interface to run statements; ``storage_lib.sql.Session`` implements it."""

    @property
    def database(self) -> str:
        """The current database, used for names without one."""

    def execute_script(self, text: str) -> Iterable[Result]:
        """Run statements in order and yield their results."""


def run_shell(
    session: Statements,
    catalog: Catalog,
    printer: ResultPrinter,
    *,
    given: Input | None = None,
    shown: Output | None = None,
) -> None:
    """Prompt for statements and run them until the user leaves; tests pass ``given`` and ``shown``."""
    completer = StatementCompleter(catalog)
    completer.refresh(session.database)
    prompt: PromptSession[str] = PromptSession(
        history=_history(),
        completer=completer,
        complete_while_typing=False,
        complete_in_thread=True,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, _line, _wrapped: " " * (width - 2) + "> ",
        input=given,
        output=shown,
    )
    note(f"{catalog.warehouse}: {_GREETING}")
    streams: list[Result] = []
    while True:
        _report_failures(streams)
        try:
            text = prompt.prompt(lambda: HTML("<b>{}</b>> ").format(session.database))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            command = command_of(text)
        except InvalidInputError as error:
            note(str(error))
            continue
        match command:
            case Leave():
                return
            case Show():
                note(command.text)
            case Timing():
                printer.show_time(is_on=command.is_on)
            case Run():
                streams += _run(session, command.script, printer)
            case None:
                streams += _run(session, text, printer)
        completer.refresh(session.database)


def _run(session: Statements, text: str, printer: ResultPrinter) -> list[Result]:
    """Run the typed statements and return the streams that they started; errors are printed, not raised."""
    streams: list[Result] = []
    try:
        for result in session.execute_script(text):
            printer.add(result)
            streams += [result] if result.stream is not None else []
    except (StorageError, OSError) as error:
        note(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        note("interrupted")
    except Exception as error:  # noqa: BLE001  an unexpected error must not lose the session's views and settings
        note(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    finally:
        printer.finish()
    return streams


def _report_failures(streams: list[Result]) -> None:
    """Report each failed background stream once, and remove it from ``streams``."""
    for each in list(streams):
        error = None if each.stream is None else each.stream.error()
        if error is not None:
            note(f"{each.message}: it has failed. {type(error).__name__}: {error}")
            streams.remove(each)


def is_finished(text: str) -> bool:
    """Return whether Enter runs the typed text instead of starting another line."""
    if not text.strip().rstrip(";") or is_command(text):
        return True
    try:
        return is_complete(text)
    except SqlSyntaxError:
        # An unterminated string, quoted name or comment.
        return False


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @Condition
    def finished() -> bool:
        from prompt_toolkit.application import get_app

        return is_finished(get_app().current_buffer.text)

    def accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    bind: Callable[[Callable[[KeyPressEvent], None]], object] = keys.add("enter", filter=finished)
    bind(accept)
    return keys


def _history() -> History:
    """Open the user's history file in the XDG state directory; it omits statements with secrets."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    place = state / "dynamic-table" / "sql-history"
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.touch(mode=0o600)
    return _DiscreetHistory(str(place))


class _DiscreetHistory(FileHistory):
    """History file that omits statements with a password or another secret."""

    def store_string(self, string: str) -> None:
        """Store the statement unless it contains a secret."""
        if not names_a_secret(string):
            super().store_string(string)
