"""The command ``sync`` over a real broker: what it prints, its exit codes, and topics that appear later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from storage_lib import open_catalog
from storage_lib.cli.app import app
from tests.support.shared_server import unique_name
from tests.support.spark_topics import produce

if TYPE_CHECKING:
    from local_kafka import LocalKafka

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

FIELDS = [{"field": "id", "type": "int64", "optional": False}, {"field": "name", "type": "string", "optional": True}]


def change(item: int, name: object) -> dict[str, object]:
    sides = [{"field": side, "type": "struct", "fields": FIELDS, "optional": True} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}]}
    return {"schema": schema, "payload": {"before": None, "after": {"id": item, "name": name}, "op": "c"}}


def sync(kafka: LocalKafka, tmp_path: Path, *arguments: str) -> tuple[Result, dict[str, dict[str, Any]]]:
    shared = ["-w", str(tmp_path), "--option", f"log.kafka.bootstrap.servers={kafka.bootstrap_servers}", "--json"]
    ran = CliRunner().invoke(app, [*shared, "sync", "--into", "lake", "--table-option", "log.system=none", *arguments])
    rows = json.loads(ran.stdout) if ran.stdout else []
    return ran, {row["table"]: row for row in rows}


def test_a_run_creates_and_follows_the_tables_of_all_topics(kafka: LocalKafka, tmp_path: Path) -> None:
    database = unique_name(tmp_path)
    produce(kafka.bootstrap_servers, f"{database}.items", change(1, "tea"), change(2, "cup"))
    pattern = ("--topics", f"{database}.*")

    first, created = sync(kafka, tmp_path, *pattern)
    produce(kafka.bootstrap_servers, f"{database}.users", change(1, "Ann"))
    second, followed = sync(kafka, tmp_path, *pattern)

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert (created["lake.items"]["state"], created["lake.items"]["rows"]) == ("created", 2)
    assert {name: (row["state"], row["rows"]) for name, row in followed.items()} == {
        "lake.items": ("followed", 0),
        "lake.users": ("created", 1),
    }
    assert open_catalog(str(tmp_path)).load_table("lake.users").to_arrow().to_pylist() == [{"id": 1, "name": "Ann"}]


def test_a_topic_that_stops_ends_the_command_with_1_and_its_reason(kafka: LocalKafka, tmp_path: Path) -> None:
    database = unique_name(tmp_path)
    produce(kafka.bootstrap_servers, f"{database}.items", change(1, "tea"), {"no": "change"})
    produce(kafka.bootstrap_servers, f"{database}.users", change(1, "Ann"))

    ran, rows = sync(kafka, tmp_path, "--topics", f"{database}.*")

    assert ran.exit_code == 1
    assert (rows["lake.items"]["state"], rows["lake.users"]["rows"]) == ("stopped", 1)
    assert "partition 0, offset 1" in rows["lake.items"]["error"]


def test_no_topic_and_a_rename_without_a_name_are_refused(kafka: LocalKafka, tmp_path: Path) -> None:
    nothing, _ = sync(kafka, tmp_path, "--topics", f"{unique_name(tmp_path)}.*")
    nameless, _ = sync(kafka, tmp_path, "--topics", "a.*", "--rename", "orders")

    assert (nothing.exit_code, nameless.exit_code) == (1, 1)
    assert "no topic matches" in nothing.stderr
    assert "is not REGEX=NAME" in nameless.stderr
