"""A connection's secrets appear in no response of Airflow's API, no log, and no file that other users may read."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.core_api.datamodels.connections import ConnectionBody, ConnectionResponse
from airflow.api_fastapi.core_api.services.public.connections import update_orm_from_pydantic
from airflow.models.connection import Connection
from airflow.sdk._shared.secrets_masker import redact

from dynamic_table.files.private_files import make_private_directory, open_private, write_private
from dynamic_table.hook import DynamicTableHook
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.sinks.sink_job import open_job_directory, turn_to_start
from dynamic_table.sinks.sink_settings import checked_open_options, secrets_apart
from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.sink.sink_spec import refuse_other_servers
from storage_lib.sql.definition.virtual_columns import refuse_reaching_out

PLANTED = {
    "s3.secret-key": "planted-one",
    "log.kafka.ssl.keystore.key": "planted-two",
    "uri": "postgresql://ann:planted@three@db/tables",
    "endpoint": "Endpoint=sb://ns/;SharedAccessKey=planted-four=",
    "s3.region": "planted-five",
}

LOGIN = "planted-six"


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., DynamicTableHook]:
    """Return a factory of hooks for connections with the given extra."""

    def made(**extra: Any) -> DynamicTableHook:
        connection = {"conn_type": "dynamic_table", "extra": {"warehouse": "/tables", **extra}}
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
        return DynamicTableHook(dynamic_table_conn_id="lake")

    return made


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Set umask 0, so that no file is private by chance."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("spelled", [dict, json.dumps], ids=["object", "text"])
def test_secret_options_are_options(lake: Callable[..., DynamicTableHook], spelled: Callable[[Any], Any]) -> None:
    hook = lake(options={"bucket": 3, "uri": "sqlite://"}, secret_options=spelled(PLANTED))

    assert hook.options == {"bucket": "3", **PLANTED}
    assert hook.secret_keys == set(PLANTED)


@pytest.mark.parametrize("key", ["s3.secret-key", "log.kafka.ssl.keystore.key", "uri", "endpoint"])
@pytest.mark.parametrize("spelled", [dict, json.dumps], ids=["object", "text"])
def test_a_secret_among_the_options_that_airflow_shows_is_refused(
    lake: Callable[..., DynamicTableHook], key: str, spelled: Callable[[Any], Any]
) -> None:
    hook = lake(options=spelled({"bucket": "3", key: PLANTED[key]}))

    with pytest.raises(InvalidInputError, match=rf"options: {key}.*move it to 'secret_options'") as refused:
        _ = hook.options
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("field", ["catalog_uri", "warehouse", "bootstrap_servers"])
def test_a_password_in_an_address_that_airflow_shows_is_refused(
    lake: Callable[..., DynamicTableHook], field: str
) -> None:
    with pytest.raises(InvalidInputError, match=field) as refused:
        _ = lake(**{field: PLANTED["uri"]}).options
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("spelled", [dict, json.dumps], ids=["object", "text"])
def test_airflows_api_shows_no_secret_option_and_an_edit_keeps_it(spelled: Callable[[Any], Any]) -> None:
    extra = {"warehouse": "/tables", "options": {"bucket": "3"}, "secret_options": spelled(PLANTED)}
    stored = Connection(conn_id="lake", conn_type="dynamic_table", password=LOGIN, extra=json.dumps(extra))

    answer = ConnectionResponse.model_validate(stored, from_attributes=True).model_dump_json(by_alias=True)

    assert "planted" not in answer
    shown = json.loads(answer)
    edited = json.loads(shown["extra"]) | {"warehouse": "/elsewhere"}
    body = {"connection_id": "lake", "conn_type": "dynamic_table", "extra": json.dumps(edited)}
    update_orm_from_pydantic(stored, ConnectionBody.model_validate(body | {"password": shown["password"]}))
    assert stored.extra_dejson == extra | {"warehouse": "/elsewhere"}
    assert stored.password == LOGIN


def test_every_secret_of_a_connection_is_masked_in_logs(lake: Callable[..., DynamicTableHook]) -> None:
    _ = lake(secret_options=PLANTED).options

    for text in (*PLANTED.values(), "planted@three", "connecting with planted-four= failed"):
        assert "planted" not in str(redact(text)), text


def test_what_a_sink_is_told_in_a_file_holds_no_secret() -> None:
    shown, variables, environment = secrets_apart({"bucket": "3", **PLANTED}, {"s3.region"})

    assert shown == {"bucket": "3"}
    assert set(variables) == set(PLANTED)
    assert sorted(environment.values()) == sorted(PLANTED.values())


@pytest.mark.parametrize("key", ["s3.secret-key", "log.kafka.ssl.keystore.key", "uri", "endpoint"])
def test_a_form_gives_no_secret_by_name_or_by_value(key: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"names {key}.* is a secret") as refused:
        checked_open_options({key: PLANTED[key]}, "source['options']")
    assert "planted" not in str(refused.value)


def test_credentials_of_a_connection_go_to_no_servers_of_an_ingested_topic() -> None:
    with pytest.raises(InvalidInputError, match="credentials go only"):
        refuse_other_servers({"log.kafka.bootstrap.servers": "elsewhere:9092"}, {"log.kafka.sasl.plain.password"})
    refuse_other_servers({"log.kafka.bootstrap.servers": "elsewhere:9092"}, {"s3.secret-key"})


@pytest.mark.usefixtures("open_umask")
def test_files_of_jobs_are_private_from_their_creation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "chmod", None)
    monkeypatch.setattr(Path, "chmod", None)
    table = tmp_path / "jobs" / "db.t"
    with turn_to_start(table):
        job = open_job_directory(table, owner="dag.task")
    job.launch(["true"], json.dumps({}), environment={"A": "b"})
    job.request_stop("enough")

    found = {path.relative_to(tmp_path): path.lstat().st_mode for path in (tmp_path / "jobs").rglob("*")}
    assert {path.name for path in found} >= {"spec.json", "owner", "process.json", "log.txt", "stop", "start.lock"}
    for path, mode in found.items():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path
    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o700


@pytest.mark.usefixtures("open_umask")
def test_a_directory_of_an_earlier_version_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir(mode=0o755)

    make_private_directory(tmp_path / "jobs")

    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o700
    with pytest.raises(FileExistsError):
        make_private_directory(tmp_path / "jobs", exist_ok=False)


@pytest.mark.usefixtures("open_umask")
def test_a_file_that_was_open_to_others_is_replaced_and_a_link_is_not_followed(tmp_path: Path) -> None:
    victim, file, link = tmp_path / "victim", tmp_path / "file", tmp_path / "link"
    victim.write_text("kept")
    file.write_text("old")
    link.symlink_to(victim)

    write_private(file, "new")
    with open_private(link) as log:
        log.write(b"log")

    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)
    assert (victim.read_text(), link.is_symlink(), link.read_text()) == ("kept", False, "log")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"log.kafka.bootstrap.servers": "elsewhere:9092"}, "credentials go only"),
        ({"log.kafka.security.protocol": "PLAINTEXT"}, "credentials go only"),
        ({"log.properties.bootstrap.servers": "elsewhere:9092"}, "credentials go only"),
        ({"log.schema-registry.url": "http://elsewhere"}, "credentials go only"),
        ({"column.x.expression": "reflect('java.lang.System', 'getenv', 'HOME')"}, "more than an expression"),
        ({"column.x.expression": "system.builtin.java_method('a', 'b')"}, "more than an expression"),
        ({"column.x.expression": "(SELECT TRANSFORM(1) USING 'touch /x' AS (y))"}, "more than an expression"),
        ({"column.x.expression": "(SELECT max(value) FROM text.`/etc/passwd`)"}, "more than an expression"),
        ({"column.x.expression": "'${env:HOME}'"}, "more than an expression"),
        ({"column.x.expression": "1) AS y, (2"}, "more than an expression"),
    ],
)
@pytest.mark.parametrize("by", ["options", "ddl"])
def test_a_table_that_a_form_declares_sends_no_credentials_and_runs_no_code(
    lake: Callable[..., DynamicTableHook], options: dict[str, str], said: str, by: str, tmp_path: Path
) -> None:
    pytest.importorskip("sqlglot")
    hook = lake(warehouse=str(tmp_path), secret_options={"log.kafka.sasl.plain.password": "sesame"})
    listed = ", ".join("'{}' = '{}'".format(key, value.replace("'", "''")) for key, value in options.items())
    declared: dict[str, Any] = (
        {"columns": {"id": "BIGINT"}, "options": options}
        if by == "options"
        else {"ddl": f"CREATE TABLE db.t (id BIGINT) WITH ({listed})"}
    )
    task = ProvisionTableOperator(
        task_id="p", table="db.t", dynamic_table_conn_id=hook.dynamic_table_conn_id, **declared
    )

    with pytest.raises(InvalidInputError, match=said):
        task.execute({})
    assert not hook.get_conn().table_exists("db.t")


def test_a_computed_column_over_columns_is_declared(tmp_path: Path) -> None:
    refuse_reaching_out("db.t", {"column.x.expression": "extract(YEAR FROM day) + coalesce(round(price, 2), id % 7)"})
    refuse_reaching_out("db.t", {"column.x.expression": "CASE WHEN a > 1 THEN upper(b) ELSE '(x)' END", "x.y": "${z}"})
