"""Options and errors of readers of an external topic."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import InvalidInputError, LeaseLostError, NotFoundError
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.schema.types.variant import VARIANT_ARROW
from storage_lib.spark.types.spark_errors import storage_error_in
from tests.support.spark_topics import produce

if TYPE_CHECKING:
    from local_kafka import LocalKafka

COLUMNS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "'topic'"),
        ({"log.scan": "sometimes"}, "full, latest, from-timestamp"),
        ({"log.format": "csv"}, "debezium-json, debezium-json-schema, debezium-avro, debezium-fl"),
        ({"source.on-truncate": "drop"}, "source.on-truncate is 'drop'; it has to be one of fail, apply, ignore"),
        ({"source.on-reject": "drop"}, "source.on-reject is 'drop'; it has to be one of fail, skip, quarantine"),
        ({"log.scan.on-corrupt": "drop"}, "log.scan.on-corrupt is 'drop'; it has to be one of fail, skip"),
        ({"source.before-image": "no"}, "source.before-image is 'no'; it has to be one of auto, whole, key"),
        ({"debezium.decimal-handling-mode": "x"}, "decimal-handling-mode is 'x'"),
        ({"log.scan.offsets": "x"}, "log.scan is one of"),
        ({"log.scan": "from-timestamp"}, "log.scan.timestamp-millis"),
        ({"maxRowsPerTrigger": "many"}, "whole numbers"),
        ({"maxRowsPerTrigger": "0"}, "use 1 or more"),
        ({"log.scan.on-corupt": "skip"}, "unknown option 'log.scan.on-corupt'; did you mean 'log.scan.on-corrupt'"),
        ({"maxRowPerTrigger": "5"}, "did you mean 'maxrowspertrigger'"),
        ({"startingOffsets": "earliest"}, "topic cdc: unknown option 'startingoffsets'"),
        ({"column.types": "x"}, "JSON of column -> type"),
        ({"column.types": "5"}, "JSON of column -> type"),
        ({"column.types": '{"nothing": "INT"}'}, "names 'nothing'"),
    ],
)
def test_what_can_not_be_is_refused(options: dict[str, str], complaint: str) -> None:
    topic = {"topic": "cdc"} if options else {}

    with pytest.raises(InvalidInputError, match=complaint):
        ExternalTopic.parse({**topic, **options}, COLUMNS)


def test_options_of_the_catalog_and_of_users_come_along() -> None:
    options = {"metastore": "filesystem", "s3.endpoint": "http://127.0.0.1:1", "bucket": "2", "x.note": "mine"}
    assert ExternalTopic.parse({"topic": "cdc", **options}, COLUMNS).name == "cdc"


def test_variants_are_not_read_from_a_topic() -> None:
    columns = pa.schema([("id", pa.int64()), ("list", pa.list_(VARIANT_ARROW))])

    with pytest.raises(InvalidInputError, match=r"topic cdc: column 'list' is a VARIANT, .* into a STRING column"):
        ExternalTopic.parse({"topic": "cdc"}, columns)


@pytest.mark.parametrize("prefix", ["kafka.", "log.kafka.", "Kafka."])
def test_the_clients_options_are_taken_in_both_spellings(prefix: str) -> None:
    topic = ExternalTopic.parse(
        {"path": "cdc", f"{prefix}acks": "1", "column.types": '{"at": "TIMESTAMP(3)"}'}, COLUMNS
    )

    assert topic.client_options == {"acks": "1"}
    assert topic.name == "cdc"
    assert topic.columns.field("at").type == pa.timestamp("ms")


def test_a_topics_secrets_are_not_shown() -> None:
    secrets = {"kafka.sasl.plain.password": "sesame", "log.schema-registry.password": "sesame"}
    topic = ExternalTopic.parse({"topic": "cdc", **secrets}, COLUMNS)

    assert topic.client_options == {"sasl.plain.password": "sesame"}
    assert topic.registry_options == {"password": "sesame"}
    assert "sesame" not in repr(topic)


@pytest.mark.parametrize("format_", list(ExternalFormat))
@pytest.mark.kafka
@pytest.mark.integration
def test_a_topic_is_read_in_its_format_also_elsewhere(kafka: LocalKafka, format_: ExternalFormat) -> None:
    produce(kafka.bootstrap_servers, "of-any-format")
    options = {"topic": "of-any-format", "kafka.bootstrap.servers": kafka.bootstrap_servers, "log.format": format_}
    registry = {"log.schema-registry.url": "http://registry:8081", "primary-key": "id"}

    topic = ExternalTopic.parse({**options, **registry}, COLUMNS)

    captured = pickle.loads(pickle.dumps(topic.captured(topic.log())))  # noqa: S301  ours

    assert captured.decoder.name == format_
    assert [each.changes.rows.num_rows for each in captured.read(captured.log.earliest_offsets())] == [0]
    if "avro" in format_:
        with pytest.raises(InvalidInputError, match="needs a schema registry"):
            ExternalTopic.parse({**options, "primary-key": "id"}, COLUMNS).captured(topic.log())


@pytest.mark.kafka
@pytest.mark.integration
def test_a_topic_that_is_not_there_is_for_others_to_make(kafka: LocalKafka) -> None:
    servers = kafka.bootstrap_servers
    topic = ExternalTopic.parse({"topic": "not-yet-made", "kafka.bootstrap.servers": servers}, COLUMNS)

    with pytest.raises(NotFoundError, match=f"{servers} has no topic 'not-yet-made' to read from; check its name"):
        topic.log()


def test_the_last_error_of_ours_in_a_traceback_is_the_one_that_counts() -> None:
    text = (
        "storage_lib.errors.InvalidInputError: first\nDuring handling:\n"
        "storage_lib.errors.LeaseLostError: last\nstorage_lib.errors.Sequence: no error\n"
    )

    found = storage_error_in(text)

    assert isinstance(found, LeaseLostError)
    assert str(found) == "last"
    assert storage_error_in("ValueError: not ours") is None


@pytest.mark.parametrize(
    ("key", "said"),
    [("log.scna", "did you mean 'log.scan'"), ("foo", "unknown option 'foo'"), ("max.rows", "unknown option")],
)
def test_an_option_that_nothing_heeds_is_refused(key: str, said: str) -> None:
    columns = pa.schema([("id", pa.int64())])
    with pytest.raises(InvalidInputError, match=said):
        ExternalTopic.parse({"topic": "t", key: "x"}, columns)
    of_a_connection = {"s3.region": "r", "metastore": "filesystem", "bucket": "3", "log.kafka.client.id": "c"}
    assert ExternalTopic.parse({"topic": "t", **of_a_connection}, columns).name == "t"
