"""The command line, as used by a person and by a script: output, files, errors and exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from storage_lib import AddColumn, DynamicTable, SetOption, open_catalog
from storage_lib.cli.app import app
from storage_lib.cli.context import TRY_AGAIN
from storage_lib.cli.leading_options import with_leading_options
from storage_lib.errors import UnavailableError
from storage_lib.progress import report_to
from storage_lib.table.namespaces.table_inspection import TableInspection
from storage_lib.table.protocol.outcome import reports_outcome
from storage_lib.table.protocol.table_context import TableContext
from tests.support.extras import needs
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.recorded_progress import RecordedProgress

COLUMNS = "id BIGINT NOT NULL, day STRING NOT NULL, price DECIMAL(9, 2)"


class Shell:
    """Runs commands on one warehouse."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse

    def run(self, *arguments: str, stdin: bytes | None = None) -> Result:
        given = ["-w", str(self.warehouse), "-o", "log.system=none", *arguments]
        return CliRunner().invoke(app, given, input=stdin)

    def answer(self, *arguments: str, stdin: bytes | None = None) -> Any:
        """Return the JSON output of a command."""
        result = self.run("--json", *arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    @property
    def orders(self) -> DynamicTable:
        return open_catalog(str(self.warehouse)).load_table("shop.orders")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell whose warehouse has one table of two rows in two partitions."""
    shell = Shell(tmp_path / "warehouse")
    made = shell.run(
        "create", "shop.orders", COLUMNS, "-k", "id", "-k", "day", "--partition-by", "day", "--with", "bucket=1"
    )
    assert made.exit_code == 0, made.output
    written = shell.run("write", "shop.orders", "-", "-f", "csv", stdin=b"id,day,price\n1,a,1.50\n2,b,2.25\n")
    assert written.exit_code == 0, written.output
    return shell


def test_help_of_every_command_waits_for_nothing_heavy() -> None:
    script = (
        "import sys\nfrom typer.main import get_command\nfrom typer.testing import CliRunner\n"
        "from storage_lib.cli.app import app\n"
        "def paths(command, path=()):\n"
        "    yield path\n"
        "    for name, each in getattr(command, 'commands', {}).items():\n"
        "        yield from paths(each, (*path, name))\n"
        "asked = 0\n"
        "for path in paths(get_command(app)):\n"
        "    answer = CliRunner().invoke(app, [*path, '--help'])\n"
        "    assert answer.exit_code == 0 and 'Usage' in answer.output, (path, answer.output)\n"
        "    asked += 1\n"
        "heavy = 'pyarrow numpy polars kafka pyspark lark prompt_toolkit sqlalchemy'.split()\n"
        "print(asked, [name for name in heavy if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    asked, heavy = told.stdout.strip().split(" ", 1)
    assert int(asked) > 20
    assert heavy == "[]"


def test_the_installed_command_answers() -> None:
    command = Path(sys.executable).with_name("dynamic-table")

    told = subprocess.run([command, "tables", "--help"], capture_output=True, text=True, check=True)

    assert "List the tables." in told.stdout


def test_the_command_without_its_extra_says_how_to_install_it() -> None:
    without = "import sys; sys.modules['typer'] = None; from storage_lib.cli.app import app; app()"
    refused = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert refused.stderr == "dynamic-table needs typer: pip install 'spark-dynamic-tables[cli]'\n"


def test_a_table_is_looked_at(shell: Shell) -> None:
    assert shell.answer("tables") == ["shop.orders"]
    assert shell.answer("describe", "shop.orders")["primary key"] == "id, day"
    assert shell.answer("describe", "shop.orders", "-p", "day=a")["rows (physical)"] == "1"
    assert shell.answer("health", "shop.orders")["row_count"] == 2
    assert [each["commit_kind"] for each in shell.answer("snapshots", "shop.orders")] == ["APPEND"]
    assert [(each["partition"], each["record_count"]) for each in shell.answer("files", "shop.orders")] == [
        ("day=a", 1),
        ("day=b", 1),
    ]
    assert [each["record_count"] for each in shell.answer("partitions", "shop.orders")] == [1, 1]
    assert shell.answer("leases", "shop.orders")["held by"] == "nobody"
    [snapshot] = Path(shell.orders.location, "snapshot").glob("snapshot-1")
    assert '"commitKind": "APPEND"' in shell.run("dump", str(snapshot)).stdout


def test_the_reference_of_options_needs_no_warehouse() -> None:
    shown = CliRunner().invoke(app, ["options", "log.format"])
    listed = CliRunner().invoke(app, ["options", "--json"])
    refused = CliRunner().invoke(app, ["options", "log.fromat"])

    assert shown.stdout.split()[:5] == ["option", "default", "meaning", "log.format", "debezium-json"]
    assert json.loads(listed.stdout)[0].keys() == {"option", "default", "meaning"}
    assert (refused.exit_code, "did you mean 'log.format'?" in refused.stderr) == (1, True)


def test_a_catalog_without_tables_and_a_database_that_is_not_there_are_told_apart(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = CliRunner().invoke(app, ["-w", str(tmp_path / "empty"), "tables"])
    refused = shell.run("tables", "shopp")

    assert (empty.exit_code, empty.stderr.startswith("no tables")) == (0, True)
    assert shell.answer("tables", "shop") == ["shop.orders"]
    assert (refused.exit_code, refused.stderr) == (
        1,
        "NotFoundError: database shopp does not exist; did you mean 'shop'?\n",
    )


def test_dags_are_not_installed_into_a_file(tmp_path: Path) -> None:
    file = tmp_path / "dags"
    file.write_text("")

    refused = CliRunner().invoke(app, ["airflow", "install-dags", str(file)])

    assert (refused.exit_code, f"{file} is a file" in refused.stderr.replace("\n", "")) == (1, True)


@needs("pyspark", "sqlglot")
def test_sql_on_another_spark_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.9")

    refused = CliRunner().invoke(app, ["-w", str(tmp_path / "warehouse"), "sql", "CREATE TABLE t (id INT)"])

    assert refused.exit_code == 1
    assert refused.stderr.startswith("InvalidInputError: pyspark 3.5.9 is installed, in ")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_java_is_no_problem_of_an_installation_without_spark(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with_spark = shell.run("--json", "doctor")
    monkeypatch.setattr("storage_lib.cli.doctor.find_spec", lambda _: None)
    without = shell.run("--json", "doctor")

    assert [(each.exit_code, json.loads(each.stdout)[0]["is_well"]) for each in (with_spark, without)] == [
        (1, False),
        (0, True),
    ]
    assert "only Spark needs it" in json.loads(without.stdout)[0]["text"]


def test_what_is_half_a_table_is_found_and_mended(shell: Shell) -> None:
    schema = Path(shell.orders.location, "schema", "schema-0").read_bytes()
    shell.orders.environment.file_io.write_bytes(f"{shell.orders.location}/dropped", schema)

    [found] = shell.answer("orphans")
    assert (found["table"], found["what"]) == ("shop.orders", "an unfinished drop")
    assert shell.answer("orphans", "--delete")[0]["done"] == "younger than asked for"
    assert shell.answer("orphans", "--delete", "--older-than-hours", "0")[0]["done"] == "deleted"
    assert shell.answer("orphans") == []
    assert shell.answer("tables") == []


def test_rows_are_read_in_each_form(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("read", "shop.orders", "-c", "id,price").stdout.split() == [
        "id",
        "price",
        "1",
        "1.50",
        "2",
        "2.25",
    ]
    lines = shell.run("read", "shop.orders", "-f", "json", "-n", "1").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"id": 1, "day": "a", "price": "1.50"}]
    assert shell.run("read", "shop.orders", "-f", "csv").stdout == '"id","day","price"\n1,"a",1.50\n2,"b",2.25\n'
    for name in ("rows.parquet", "rows.arrow", "rows.csv", "rows.jsonl"):
        written = shell.run("read", "shop.orders", "--output", str(tmp_path / name))
        assert (written.exit_code, written.stderr.startswith("2 rows ->")) == (0, True), written.output
    assert pq.read_table(tmp_path / "rows.parquet").equals(shell.orders.to_arrow())
    assert pa.ipc.open_stream(tmp_path / "rows.arrow").read_all().equals(shell.orders.to_arrow())


def test_system_tables_are_read_like_others(shell: Shell) -> None:
    lines = shell.run("read", "shop.orders$snapshots", "-c", "snapshot_id,commit_kind", "-f", "json").stdout
    assert json.loads(lines) == {"snapshot_id": 1, "commit_kind": "APPEND"}
    refused = shell.run("read", "shop.orders$snapshots", "-c", "nothing")
    assert refused.exit_code == 1
    assert "unknown column 'nothing'; the columns are snapshot_id" in refused.output
    refused = shell.run("read", "shop.orders$snapshots", "--snapshot", "1")
    assert "takes no --snapshot, --tag or --filter" in refused.output


def test_a_table_is_compacted_when_nothing_is_left_in_level_0(shell: Shell) -> None:
    assert shell.answer("describe", "shop.orders")["compacted"] == "false"
    assert shell.run("compact", "shop.orders").exit_code == 0
    told = shell.answer("describe", "shop.orders", "-p", "day=a")
    assert (told["compacted"], told["last-modified"][-6:]) == ("true", "+00:00")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.csv", "rows.jsonl"])
def test_what_was_read_can_be_written(shell: Shell, tmp_path: Path, name: str) -> None:
    shell.run("read", "shop.orders", "--output", str(tmp_path / name))
    assert shell.run("create", "shop.copy", COLUMNS, "-k", "id").exit_code == 0

    assert shell.answer("write", "shop.copy", str(tmp_path / name)) == {"snapshot": 1, "rows": 2}
    copy = open_catalog(str(shell.warehouse)).load_table("shop.copy")
    assert copy.to_arrow().sort_by("id").equals(shell.orders.to_arrow().sort_by("id"))

    shell.run("read", "shop.orders", "-n", "1", "--output", str(tmp_path / name))
    assert shell.answer("write", "shop.copy", str(tmp_path / name), "--overwrite") == {"snapshot": 2, "rows": 1}
    assert copy.to_arrow().num_rows == 1


def test_parquet_may_come_from_standard_input(shell: Shell) -> None:
    sink = io.BytesIO()
    pq.write_table(shell.orders.to_arrow(), sink)

    assert shell.answer("write", "shop.orders", "-", "-f", "parquet", stdin=sink.getvalue())["rows"] == 2


def test_history_is_taken_care_of(shell: Shell) -> None:
    assert shell.answer("tags", "create", "shop.orders", "first") == {"tag": "first", "snapshot": 1}
    shell.answer("write", "shop.orders", "-", "-f", "csv", stdin=b"id,day,price\n1,a,9.00\n")
    assert shell.answer("compact", "shop.orders", "-p", "day=a") == {"snapshot": 3}
    assert shell.answer("compact", "shop.orders", "--no-full") == {"snapshot": "nothing to do"}
    assert shell.answer("rollback", "shop.orders", "--tag", "first") == {"snapshot": 4}
    assert sorted(map(str, shell.orders.to_arrow()["price"].to_pylist())) == ["1.50", "2.25"]
    assert shell.answer("tags", "list", "shop.orders")[0]["tag"] == "first"
    assert shell.run("tags", "delete", "shop.orders", "first").exit_code == 0
    assert shell.answer("expire", "shop.orders", "--retain-last", "1")["snapshots"] == 3
    assert shell.answer("orphans", "shop.orders", "--older-than-hours", "0") == []
    assert shell.run("drop", "shop.orders", "--yes").exit_code == 0
    assert shell.answer("tables") == []


def test_a_table_is_rewritten_into_other_buckets_and_with_a_key(shell: Shell) -> None:
    assert shell.answer("rewrite", "shop.orders", "--bucket", "3") == {"schema": 1}
    assert shell.answer("rewrite", "shop.orders", "--bucket", "3") == {"schema": "nothing to do"}
    assert shell.answer("describe", "shop.orders")["bucket"] == "3"
    assert shell.run("create", "shop.visits", "id BIGINT").exit_code == 0
    assert shell.answer("rewrite", "shop.visits", "--primary-key", "id") == {"schema": 1}
    assert shell.answer("describe", "shop.visits")["primary key"] == "id"
    refused = shell.run("rewrite", "shop.orders")
    assert (refused.exit_code, "--primary-key, --bucket or --bucket-key" in refused.stderr) == (1, True)


def test_a_drop_asks_first(shell: Shell) -> None:
    refused = shell.run("drop", "shop.orders", stdin=b"n\n")

    assert refused.exit_code == 1
    assert shell.answer("tables") == ["shop.orders"]


def test_orphans_are_listed_unless_they_are_to_be_deleted(shell: Shell) -> None:
    [data, *_] = Path(shell.orders.location).rglob("data-*.parquet")
    orphan = data.with_name("data-00000000-0000-0000-0000-000000000000-0.parquet")
    orphan.write_bytes(b"x")

    listed = shell.answer("orphans", "shop.orders", "--older-than-hours", "0")
    assert [each["file"] for each in listed] == [str(orphan)]
    assert orphan.exists()
    shell.answer("orphans", "shop.orders", "--older-than-hours", "0", "--delete")
    assert not orphan.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["describe", "shop.nothing"], "table shop.nothing does not exist"),
        (["read", "shop.orders", "-c", "nothing"], "'nothing'"),
        (["read", "shop.orders", "--snapshot", "9"], "9"),
        (["rollback", "shop.orders"], "either --snapshot or --tag"),
        (["create", "shop.more", "id BIGNIT", "-k", "id"], "BIGNIT"),
        (["create", "shop.orders", COLUMNS, "-k", "id"], "already exists"),
        (["create", "shop.more", COLUMNS, "--with", "bucket"], "key=value"),
        (["write", "shop.orders", "rows.txt"], "--format"),
        (["write", "shop.orders", "/nowhere/rows.csv"], "/nowhere/rows.csv"),
        (["describe", "shop.orders", "-p", "day"], "--partition"),
        (["dump", "/nowhere/snapshot-1"], "/nowhere/snapshot-1"),
    ],
)
def test_what_is_refused_is_one_line_and_exit_code_one(shell: Shell, arguments: list[str], told: str) -> None:
    refused = shell.run(*arguments)

    assert (refused.exit_code, told in refused.stderr, "Traceback" in refused.output) == (1, True, False), (
        refused.output
    )
    assert refused.stdout == ""


def test_rows_that_do_not_fit_leave_nothing(shell: Shell) -> None:
    refused = shell.run("write", "shop.orders", "-", "-f", "csv", stdin=b"id,day,price\nx,a,1.50\n")

    assert (refused.exit_code, "csv" in refused.stderr) == (1, True), refused.output
    assert shell.answer("health", "shop.orders")["snapshot_id"] == 1


def test_no_warehouse_says_how_to_name_one() -> None:
    refused = CliRunner().invoke(app, ["tables"], env={"DYNAMIC_TABLE_WAREHOUSE": ""})

    assert (refused.exit_code, "--warehouse" in refused.stderr) == (1, True), refused.output


def test_a_warehouse_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    for command in ("tables", "doctor"):
        refused = CliRunner().invoke(app, [command, "-w", str(tmp_path / "nowhere")])
        assert (refused.exit_code, "does not exist" in refused.output) == (1, True), refused.output
    assert not (tmp_path / "nowhere").exists()


def test_statements_for_a_warehouse_that_does_not_exist_are_preceded_by_a_warning(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["sql", "SELEC 1", "-w", str(tmp_path / "nowhere")])
    warning, _, error = ran.stderr.partition("\n")
    assert warning.startswith(f"warehouse {tmp_path / 'nowhere'} does not exist")
    assert error.startswith("SqlSyntaxError")


def test_options_of_all_commands_may_follow_the_command(shell: Shell) -> None:
    found = CliRunner().invoke(app, ["tables", "--json", "--warehouse", str(shell.warehouse), "-o", "log.system=none"])

    assert json.loads(found.stdout) == ["shop.orders"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["tables", "-w", "/t"], ["-w", "/t", "tables"]),
        (["read", "t", "--warehouse=/t", "--limit", "1"], ["--warehouse=/t", "read", "t", "--limit", "1"]),
        (["-o", "a=1", "tables", "-o", "b=2", "--json"], ["-o", "a=1", "-o", "b=2", "--json", "tables"]),
        (["read", "t", "--output", "f"], ["read", "t", "--output", "f"]),
        (["read", "--", "-w"], ["read", "--", "-w"]),
        (["tables", "-w"], ["-w", "tables"]),
    ],
)
def test_only_options_of_all_commands_move(given: list[str], wanted: list[str]) -> None:
    assert with_leading_options(given) == wanted


def test_an_error_is_json_with_json(shell: Shell) -> None:
    refused = shell.run("describe", "shop.nothing", "--json")

    said = json.loads(refused.stderr)
    assert refused.exit_code == 1
    assert said["error"] == "NotFoundError"
    assert "shop.nothing" in said["message"]
    assert said["retryable"] is False


def test_an_error_of_the_command_line_is_json_with_json(shell: Shell) -> None:
    for arguments in (["read", "shop.orders", "--limit", "-1"], ["read", "shop.orders", "--bogus"], ["nothing"]):
        refused = shell.run(*arguments, "--json")
        error = json.loads(refused.stderr)
        assert (refused.exit_code, error["error"], error["retryable"]) == (2, "UsageError", False)
        assert error["message"]


def test_a_missing_value_is_shown_as_null(shell: Shell) -> None:
    shell.run("write", "shop.orders", "-", "-f", "json", stdin=b'{"id": 3, "day": "c", "price": null}\n')

    assert shell.run("read", "shop.orders", "--filter", "id = 3").stdout.split()[-3:] == ["3", "c", "NULL"]


def test_a_table_cut_to_twenty_rows_says_that_there_are_more(shell: Shell) -> None:
    lines = "".join(f'{{"id": {number}, "day": "d", "price": null}}\n' for number in range(18))
    shell.run("write", "shop.orders", "-", "-f", "json", stdin=lines.encode())
    whole = shell.run("read", "shop.orders")
    assert (len(whole.stdout.splitlines()), whole.stderr) == (21, "")

    shell.run("write", "shop.orders", "-", "-f", "json", stdin=b'{"id": 99, "day": "d", "price": null}\n')
    cut = shell.run("read", "shop.orders")
    assert (len(cut.stdout.splitlines()), cut.stderr) == (21, "the first 20 rows; --limit shows more\n")
    assert shell.run("read", "shop.orders", "--limit", "2").stderr == ""


def test_rows_are_filtered_by_a_condition_in_sql(shell: Shell) -> None:
    read = shell.run("--json", "read", "shop.orders", "--filter", "price > 2 AND day IN ('a', 'b')", "-c", "id,day")
    assert json.loads(read.stdout) == {"id": 2, "day": "b"}

    refused = shell.run("read", "shop.orders", "--filter", "price >")
    assert (refused.exit_code, "invalid filter" in refused.stderr) == (1, True)


def test_an_outage_is_worth_another_try(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_inspection: TableInspection, *_: object) -> None:
        raise UnavailableError("the store does not answer")

    monkeypatch.setattr(TableInspection, "snapshots", fail)

    assert shell.run("snapshots", "shop.orders").exit_code == TRY_AGAIN


def test_an_error_of_a_write_says_whether_it_was_committed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_table: DynamicTable, *_: object, **__: object) -> None:
        raise UnavailableError("the disk is full")

    monkeypatch.setattr(DynamicTable, "append", reports_outcome(fail))
    failed = shell.run("write", "shop.orders", "-", "-f", "csv", stdin=b"id,day,price\n9,a,1.50\n")

    assert failed.exit_code == TRY_AGAIN
    assert failed.stderr.splitlines()[-2:] == ["UnavailableError: the disk is full", "Committed: no"]


def test_a_doctor_finds_a_lost_and_a_cut_file(shell: Shell) -> None:
    well = shell.answer("doctor", "shop.orders")
    assert [each["is_well"] for each in well if each["what"] == "shop.orders"] == [True]
    lost, cut = sorted(Path(shell.orders.location).rglob("data-*.parquet"))
    lost.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])

    told = shell.run("--json", "doctor")

    assert told.exit_code == 1
    [found] = [each for each in json.loads(told.stdout) if each["what"] == "shop.orders"]
    assert (found["is_well"], f"{lost} is missing" in found["text"], str(cut) in found["text"]) == (False, True, True)


def test_a_doctor_finds_an_iceberg_view_that_is_behind(shell: Shell) -> None:
    """No process has a catalog in which the table could be registered."""
    options = ["--key", "id", "--with", "metadata.iceberg.storage=rest-catalog"]
    made = shell.run("create", "shop.seen", "id BIGINT", *options)
    assert made.exit_code == 0, made.output
    shell.run("write", "shop.seen", "-", "-f", "csv", stdin=b"id\n1\n")

    told = shell.run("--json", "doctor", "shop.seen")

    assert told.exit_code == 1
    files, view = [each for each in json.loads(told.stdout) if each["what"] == "shop.seen"]
    assert (files["is_well"], view["is_well"]) == (True, False)
    assert "it lacks the newest 1 snapshot(s)" in view["text"]


def test_a_doctor_finds_what_an_interrupted_alter_left_of_an_iceberg_view(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise SimulatedCrash

    table = shell.orders.alter(SetOption("metadata.iceberg.storage", "table-location"))
    monkeypatch.setattr(TableContext, "succeed_view", crash)
    with pytest.raises(SimulatedCrash):
        table.alter(AddColumn("note", "STRING"))

    told = shell.run("--json", "doctor", "shop.orders")

    assert told.exit_code == 1
    files, view = [each for each in json.loads(told.stdout) if each["what"] == "shop.orders"]
    assert (files["is_well"], view["is_well"]) == (True, False)
    assert "it shows the columns from before the last ALTER TABLE" in view["text"]
    shell.orders.maintenance.publish_iceberg()
    assert shell.run("doctor", "shop.orders").exit_code == 0


def test_a_doctor_looks_at_data_apart_from_its_table(shell: Shell, tmp_path: Path) -> None:
    root = tmp_path / "cold"
    options = ["--with", f"file.root-path={root}", "--with", "write-mode=append-only"]
    made = shell.run("create", "shop.cold", "id BIGINT", *options)
    assert made.exit_code == 0, made.output
    shell.run("write", "shop.cold", "-", "-f", "csv", stdin=b"id\n1\n")
    (path,) = (root / "shop.db" / "cold").rglob("*.parquet")
    assert all(each["is_well"] for each in shell.answer("doctor", "shop.cold", "--deep") if each["what"] != "java")
    assert shell.answer("orphans", "shop.cold", "--older-than-hours", "0") == []

    path.write_bytes(path.read_bytes()[:-1])
    assert "bytes, not" in shell.run("--json", "doctor", "shop.cold").stdout
    path.unlink()
    assert f"{path} is missing" in shell.run("--json", "doctor", "shop.cold").stdout
    dropped = shell.run("drop", "shop.cold", "--yes")

    assert dropped.exit_code == 0, dropped.output
    assert not (root / "shop.db" / "cold").exists()


def test_a_doctor_that_reads_every_byte_reports_the_files(shell: Shell) -> None:
    told = RecordedProgress()

    with report_to(told):
        found = shell.run("doctor", "shop.orders", "--deep")

    assert found.exit_code == 0, found.output
    assert told.operations == [("check", 2, "files"), ("read", 2, "files")]
    assert found.stderr == ""


def test_a_doctor_says_that_kafka_does_not_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage_lib.log_store.kafka import kafka_check

    monkeypatch.setattr(kafka_check.count_brokers, "__kwdefaults__", {"limit_ms": 300})

    told = shell.run("-o", "log.kafka.bootstrap.servers=127.0.0.1:9", "--json", "doctor")

    [found] = [each for each in json.loads(told.stdout) if each["what"] == "kafka"]
    assert (told.exit_code, found["is_well"], "127.0.0.1:9" in found["text"]) == (1, False, True)


def test_values_are_never_taken_for_markup(shell: Shell) -> None:
    shell.answer("write", "shop.orders", "-", "-f", "csv", stdin=b"id,day,price\n3,[red]x[/],1.00\n")

    assert "[red]x[/]" in shell.run("read", "shop.orders").stdout
