"""The shell of `dynamic-table sql`, with typed input of a person, and scripts of a program."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from typer.testing import CliRunner

from storage_lib import Catalog, InvalidInputError, SqlSyntaxError, open_catalog
from storage_lib.cli.app import app
from storage_lib.cli.shell_commands import HELP
from storage_lib.cli.sql_completion import StatementCompleter
from storage_lib.cli.sql_output import ResultPrinter
from storage_lib.cli.sql_shell import is_finished, run_shell
from storage_lib.sql import Result, parse

LONG_ENOUGH = 120.0
COMMAND = Path(sys.executable).with_name("dynamic-table")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    catalog.create_table("shop.orders", {"order_id": "INT", "item": "STRING"}, primary_key=["order_id"])
    catalog.create_table("archive.orders_of_2024", {"order_id": "INT"}, primary_key=["order_id"])
    return catalog


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the history file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "dynamic-table" / "sql-history"


class Recorder:
    """A session that only records its statements."""

    database = "shop"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def execute_script(self, text: str) -> Iterable[Result]:
        self.asked.append(text)
        if "nonsense" in text:
            message = "that is nonsense"
            raise InvalidInputError(message)
        if "unforeseen" in text:
            message = "nobody thought of that\nand this is how it came about"
            raise KeyError(message)
        if "stream" in text:
            failed = InvalidInputError("the source has no such column")
            yield Result(
                message="shop.orders: stream 1 runs", stream=cast("Any", SimpleNamespace(error=lambda: failed))
            )
            return
        yield Result(rows=pa.table({"id": [1, 2]}), message="done")


def typed(catalog: Catalog, *keys: str, printer: ResultPrinter | None = None) -> Recorder:
    session = Recorder()
    with create_pipe_input() as given:
        for each in keys:
            given.send_text(each)
        run_shell(session, catalog, printer or ResultPrinter(as_json=False), given=given, shown=DummyOutput())
    return session


def test_a_stream_that_fails_behind_the_shell_is_told_once(
    catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(catalog, "INSERT a stream;\n", "SHOW TABLES;\n", "quit\n")

    told = capsys.readouterr().err
    assert (
        told.count("shop.orders: stream 1 runs: it has failed. InvalidInputError: the source has no such column") == 1
    )


def test_a_statement_ends_with_its_semicolon_however_many_lines_it_has(
    catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    session = typed(catalog, "SELECT *\n", "FROM orders\n", "WHERE item = ';';\n", "SHOW TABLES;\n", "quit\n")

    assert session.asked == ["SELECT *\nFROM orders\nWHERE item = ';';", "SHOW TABLES;"]
    said = capsys.readouterr()
    assert said.out.split() == ["id", "1", "2", "id", "1", "2"]
    assert "2 rows" in said.err
    assert "done" in said.err


def test_commands_of_the_shell_need_no_semicolon(
    catalog: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "two words.sql"
    script.write_text("SELECT 1;")

    session = typed(
        catalog, ".tables\n", ".tables shop\n", ".schema shop.orders\n", f".read '{script}'\n", "help\n", ".quit\n"
    )

    assert session.asked == ["SHOW TABLES;", "SHOW TABLES FROM shop;", "SHOW CREATE TABLE shop.orders;", "SELECT 1;"]
    assert ".timing on|off" in capsys.readouterr().err


def test_the_help_names_every_statement_that_the_parser_knows() -> None:
    with pytest.raises(SqlSyntaxError) as refused:
        parse("nonsense")

    keywords = set(re.findall(r"[A-Z]{2,}", str(refused.value).partition("found")[0])) - {"DESC"}
    assert {"ALTER", "MERGE", "WITH"} < keywords
    assert keywords <= set(re.findall(r"[A-Z]+", HELP))


def test_an_unknown_command_lists_those_there_are(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    session = typed(catalog, ".tabels\n", ".read 'half\n", ".read /nowhere\n", ".timing maybe\n", ".quit\n")

    said = capsys.readouterr().err
    assert session.asked == []
    assert "unknown command '.tabels'" in said
    assert ".databases" in said
    assert "invalid command" in said
    assert "cannot read statements from /nowhere: No such file or directory" in said
    assert "use .timing on or .timing off" in said


def test_a_person_sees_null_the_time_and_a_part_of_a_long_result(
    catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = ResultPrinter(as_json=False, rows_max=1, shows_time=True)
    typed(catalog, "SHOW TABLES;\n", ".timing off\n", "SHOW TABLES;\n", ".quit\n", printer=printer)

    said = capsys.readouterr()
    assert said.out.split() == ["id", "1", "id", "1"]
    assert len(re.findall(r"1 row in \d+\.\d\d s", said.err)) == 1
    assert said.err.count("there are more rows; add LIMIT") == 2

    printer.add(Result(rows=pa.table({"id": pa.array([None], pa.int64())})))
    assert capsys.readouterr().out.split() == ["id", "NULL"]


def test_json_holds_all_rows_in_a_shell_that_shows_a_person_some(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    frame = SimpleNamespace(isStreaming=False, limit=lambda count: frame_of(rows.slice(0, count)), toArrow=lambda: rows)
    printer = ResultPrinter(as_json=True, rows_max=1)

    printer.add(Result(dataframe=cast("Any", frame)))
    printer.finish()

    assert json.loads(capsys.readouterr().out) == [{"id": 1}, {"id": 2}, {"id": 3}]


def frame_of(rows: pa.Table) -> SimpleNamespace:
    return SimpleNamespace(isStreaming=False, toArrow=lambda: rows)


def test_an_error_is_told_and_the_shell_goes_on(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    session = typed(catalog, "nonsense;\n", "SHOW TABLES;\n", "\x04")

    assert session.asked == ["nonsense;", "SHOW TABLES;"]
    assert "InvalidInputError: that is nonsense" in capsys.readouterr().err


def test_the_shell_outlives_an_error_that_nobody_foresaw(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    session = typed(catalog, "unforeseen;\n", "SHOW TABLES;\n", "\x04")

    assert session.asked == ["unforeseen;", "SHOW TABLES;"]
    assert "KeyError: " in capsys.readouterr().err


def test_a_file_that_is_no_text_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_bytes(b"SELECT '\xff';")
    refused = CliRunner().invoke(app, ["-w", catalog.warehouse, "sql", "-f", str(script)])
    assert refused.exit_code == 1
    assert "not UTF-8 (invalid start byte at byte 8)" in refused.output


def test_a_missing_file_gives_the_error_of_the_shell(catalog: Catalog) -> None:
    refused = CliRunner().invoke(app, ["-w", catalog.warehouse, "sql", "-f", "/nowhere"])
    assert refused.exit_code == 1
    assert "cannot read statements from /nowhere: No such file or directory" in refused.output


def test_ctrl_c_throws_away_what_was_typed(catalog: Catalog) -> None:
    assert typed(catalog, "SELECT\n", "\x03", "SHOW TABLES;\n", "exit;\n").asked == ["SHOW TABLES;"]


def test_the_history_recalls_statements_and_keeps_no_secret(catalog: Catalog, state: Path) -> None:
    typed(catalog, "SHOW TABLES;\n", "SET 'table-storage.log.kafka.sasl.plain.password' = 'hush';\n", "quit\n")

    assert "SHOW TABLES;" in state.read_text()
    assert "hush" not in state.read_text()
    assert state.stat().st_mode & 0o077 == 0
    assert typed(catalog, "\x1b[A\x1b[A\n", "quit\n").asked == ["SHOW TABLES;"]


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("", True),
        ("quit", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; -- said", True),
        ("SELECT 1; SELECT", False),
    ],
)
def test_enter_runs_what_is_finished(text: str, finished: bool) -> None:  # noqa: FBT001
    assert is_finished(text) is finished


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("SHOW TAB", ["SHOW TABLES"]),
        ("tru", ["truncate table"]),
        ("SELECT * FROM ord", ["orders"]),
        ("SELECT * FROM archive.", ["archive.orders_of_2024"]),
        ("SELECT * FROM orders WHERE order", ["order_id", "orders", "order by"]),
        ("SELECT i FROM orders; SELECT * FROM o", ["orders"]),
        ("SELECT * FROM orders$sn", ["orders$snapshots"]),
        ("CREATE TABLE t (id INT) WITH ('log.ret", ["log.retention"]),
        ("SELECT item FROM nothing WHERE zz", []),
    ],
)
def test_what_could_come_next_is_offered(catalog: Catalog, before: str, offered: list[str]) -> None:
    completer = StatementCompleter(catalog)
    completer.refresh("shop")

    found = [each.text for each in completer.get_completions(Document(before), CompleteEvent())]

    if before == "SHOW TAB":
        # Completions of several words are offered at the first word only.
        assert found == []
    else:
        assert found == offered


def test_opening_words_are_offered_where_a_statement_begins(catalog: Catalog) -> None:
    completer = StatementCompleter(catalog)

    found = {each.text for each in completer.get_completions(Document("SELECT 1;\nCRE"), CompleteEvent())}

    assert found == {
        "CREATE DATABASE",
        "CREATE MATERIALIZED TABLE",
        "CREATE TABLE",
        "CREATE TEMPORARY TABLE",
        "CREATE TEMPORARY VIEW",
    }


def test_a_syntax_error_in_a_script_is_told_before_spark_is_started(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("SHOW TABLES;\nCREATE TABEL t (id INT);\n")

    told = CliRunner().invoke(app, ["-w", str(tmp_path), "sql", "-f", str(script)])

    assert told.exit_code == 1
    assert "line 2" in told.stderr
    assert CliRunner().invoke(app, ["-w", str(tmp_path), "sql", "-f", str(script), "-e", "x"]).exit_code == 1


@pytest.mark.spark
@pytest.mark.integration
def test_scripts_answer_programs_in_json(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "CREATE TABLE t (id INT, item STRING, PRIMARY KEY (id) NOT ENFORCED);\n"
        "INSERT INTO t VALUES (1, 'pen'), (2, 'ink');\nSELECT item FROM t ORDER BY id;\n"
    )

    told = subprocess.run(
        [COMMAND, "-w", tmp_path / "warehouse", "-o", "log.system=none", "--json", "sql", "-f", script, "-d", "shop"],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )

    made, written, rows = json.loads(told.stdout)
    assert made["snapshot"] is None
    assert (written["snapshot"], written["rows"]) == (1, 2)
    assert rows == [{"item": "pen"}, {"item": "ink"}]
    catalog = open_catalog(str(tmp_path / "warehouse"))
    assert catalog.load_table("shop.t").to_arrow().num_rows == 2


class Terminal:
    """A person at a terminal, simulated."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.seen = ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + LONG_ENOUGH
        while text not in self.seen:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {text!r} in what the shell said:\n{self.seen}"
            self.seen += os.read(self._descriptor, 65536).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())


@pytest.fixture
def terminal(catalog: Catalog, tmp_path: Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        [COMMAND, "-w", catalog.warehouse, "-o", "log.system=none", "sql", "--database", "shop"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "200"},
        start_new_session=True,
    )
    os.close(theirs)
    yield Terminal(ours)
    shell.kill()
    shell.wait()
    os.close(ours)


@pytest.mark.spark
@pytest.mark.integration
def test_a_person_at_a_terminal_makes_fills_and_reads_a_table(terminal: Terminal) -> None:
    terminal.wait_for("starting Spark")
    terminal.wait_for("type a statement and a semicolon")
    terminal.wait_for(">")
    terminal.type("INSERT INTO ord\t")
    terminal.wait_for("ers")
    terminal.type("\r")
    terminal.type("VALUES (1, 'pen');\r")
    terminal.wait_for("snapshot 1")
    terminal.type("SELEC item FROM orders;\r")
    terminal.wait_for("SqlSyntaxError")
    terminal.type("SELECT concat(item, '-', order_id) AS said FROM orders;\r")
    terminal.wait_for("running")
    terminal.wait_for("pen-1")
    terminal.wait_for("1 row")
    terminal.type("\x04")
