"""Kafka topics that belong to no table are reported and deleted; topics of other programs never are."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from storage_lib import CorruptFileError, InvalidInputError, open_catalog
from storage_lib.catalog.logs.orphan_topics import OrphanTopic
from storage_lib.cli.app import app
from tests.support.spark_topics import topics_of_broker

if TYPE_CHECKING:
    from local_kafka import LocalKafka

pytestmark = [pytest.mark.kafka, pytest.mark.integration]


def test_what_tables_left_behind_is_told_and_deleted_and_what_is_not_ours_stays(
    kafka: LocalKafka, tmp_path: Path
) -> None:
    connection = {"log.kafka.bootstrap.servers": kafka.bootstrap_servers}
    catalog = open_catalog(tmp_path / "warehouse", connection)
    kept, gone = (catalog.create_table(f"left.{name}", "id BIGINT NOT NULL", primary_key=["id"]) for name in "ab")
    kept.rewrite(options={"bucket": "2"})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic("left.foreign", 1)])["left.foreign"].result(120)
    other = open_catalog(tmp_path / "other", connection)
    other.create_table("left.c", "id BIGINT NOT NULL", primary_key=["id"])
    rmtree(gone.location)

    def told(*arguments: str) -> dict[str, tuple[str, str]]:
        given = ["--json", "-w", catalog.warehouse, "-o", f"log.kafka.bootstrap.servers={kafka.bootstrap_servers}"]
        answer = CliRunner().invoke(app, [*given, "orphans", "--topics", *arguments])
        assert answer.exit_code == 0, answer.output
        rows: list[dict[str, Any]] = json.loads(answer.stdout)
        return {row["topic"]: (row["what"], row["done"]) for row in rows if row["topic"].startswith("left.")}

    nobodys = "a log that belongs to no table of this catalog"
    unsure = "may belong to another catalog: see --sole-catalog"
    assert told() == {
        "left.a": ("a log that table left.a has left behind", ""),
        "left.b": (nobodys, ""),
        "left.c": (nobodys, ""),
    }
    deleted = told("--delete")
    assert {topic: done for topic, (_, done) in deleted.items()} == {
        "left.a": "deleted",
        "left.b": unsure,
        "left.c": unsure,
    }
    there = {each for each in topics_of_broker(kafka.bootstrap_servers) if each.startswith("left.")}
    assert there == {"left.a-v2", "left.b", "left.c", "left.foreign"}

    orphan = next(each for each in catalog.orphan_topics().find() if each.topic == "left.b")
    with pytest.raises(InvalidInputError, match="may belong to another catalog on the same brokers"):
        catalog.orphan_topics().delete(orphan, is_sole_catalog=False)
    catalog.orphan_topics().delete(orphan, is_sole_catalog=True)
    not_an_orphan = OrphanTopic(topic="left.c", mark=orphan.mark, table=None)
    catalog.orphan_topics().delete(not_an_orphan, is_sole_catalog=True)
    there = {each for each in topics_of_broker(kafka.bootstrap_servers) if each.startswith("left.")}
    assert there == {"left.a-v2", "left.c", "left.foreign"}

    damaged = Path(catalog.load_table("left.a").location, "schema", "schema-1")
    damaged.write_bytes(b"{")
    with pytest.raises(CorruptFileError):
        list(catalog.orphan_topics().find())
    other.drop_table("left.c")


def test_without_brokers_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"bootstrap\.servers is missing"):
        open_catalog(tmp_path, {"log.system": "none"}).orphan_topics()
