from __future__ import annotations

import random

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.option_values import parse_boolean, parse_bytes, parse_integer, parse_millis
from storage_lib.schema.options.table_options import (
    SESSION_PREFIX,
    ChangelogMode,
    LogConsistency,
    LogSystem,
    StartupMode,
    TableOptions,
    canonical_key,
    is_secret,
    masked,
    older_spellings,
    option_keys,
)

OF_PAIMON = [
    "blob.target-file-size",
    "bucket-key",
    "changelog-file.format",
    "compaction.delete-ratio-threshold",
    "compaction.file-num-limit",
    "compaction.optimization-interval",
    "consumer.expiration-time",
    "data-file.prefix",
    "dynamic-partition-overwrite",
    "file.block-size",
    "lookup-wait",
    "manifest.compression",
    "manifest.format",
    "metadata.stats-dense-store",
    "partition.expiration-time",
    "partition.timestamp-formatter",
    "path",
    "read.batch-size",
    "rowkind.field",
    "scan.bounded.watermark",
    "scan.file-creation-time-millis",
    "scan.mode",
    "scan.timestamp",
    "scan.version",
    "snapshot.clean-empty-directories",
    "snapshot.expire.limit",
    "source.split.open-file-cost",
    "spill-compression.zstd-level",
    "streaming-read-mode",
    "tag.num-retained-max",
    "type",
    "vector.target-file-size",
    "write-buffer-for-append",
    "write-buffer-spillable",
    "write-max-writers-to-spill",
]


def test_without_options_a_table_has_the_documented_defaults() -> None:
    options = TableOptions.parse({})

    assert options.file_format == "parquet"
    assert options.num_sorted_run_compaction_trigger == 5
    assert options.effective_num_levels == 6
    assert options.compaction_max_size_amplification_percent == 200
    assert options.target_file_size_bytes == 128 << 20
    assert options.lease_timeout_ms == 30_000
    assert options.lease_wait_timeout_ms == 600_000
    assert options.row_kind_field == "_row_kind"
    assert options.log_consistency is LogConsistency.TRANSACTIONAL
    assert options.log_scan is StartupMode.FULL
    assert options.change_tracking is True
    assert options == TableOptions()


def test_values_are_read_as_their_types() -> None:
    options = TableOptions.parse(
        {
            "bucket": "4",
            "target-file-size": "64 mb",
            "log.retention": "7 d",
            "write-only": "TRUE",
            "log.system": "Kafka",
            "log.scan": "from-timestamp",
            "log.scan.timestamp-millis": "1715648523456",
            "log.changelog-mode": "all",
        }
    )

    assert options.bucket == 4
    assert options.target_file_size_bytes == 64 << 20
    assert options.log_retention_ms == 604_800_000
    assert options.write_only is True
    assert options.log_system is LogSystem.KAFKA
    assert options.log_scan is StartupMode.FROM_TIMESTAMP
    assert options.log_scan_timestamp_millis == 1715648523456
    assert options.log_changelog_mode is ChangelogMode.ALL


@pytest.mark.parametrize(
    ("older", "key"),
    [
        ("table-storage.bucket", "bucket"),
        ("table-storage.log.scan.timestamp-mills", "log.scan.timestamp-millis"),
        ("log.scan.timestamp-mills", "log.scan.timestamp-millis"),
        ("log.scan.startup.mode", "log.scan"),
        ("log.pk.changelog-mode", "log.changelog-mode"),
        ("log.pk.key-format", "log.key.format"),
        ("log.properties.bootstrap.servers", "log.kafka.bootstrap.servers"),
    ],
)
def test_older_spellings_are_understood(older: str, key: str) -> None:
    assert canonical_key(older) == key


@pytest.mark.parametrize(
    ("value", "mode"),
    [("initial", StartupMode.FULL), ("latest-offset", StartupMode.LATEST), ("full", StartupMode.FULL)],
)
def test_older_values_of_where_to_start_are_understood(value: str, mode: StartupMode) -> None:
    assert TableOptions.parse({"log.scan.startup.mode": value}).log_scan is mode


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("bukcet", "bucket"),
        ("buckets", "bucket"),
        ("target-file-sise", "target-file-size"),
        ("target_file_size", "target-file-size"),
        ("file_format", "file.format"),
        ("fileformat", "file.format"),
        ("Write-Only", "write-only"),
        ("log.sytem", "log.system"),
        ("table-storage.log.consistancy", "log.consistency"),
        ("lease.time-out", "lease.timeout"),
        ("snapshot.num-retained.mni", "snapshot.num-retained.min"),
    ],
)
def test_a_slip_of_the_pen_is_refused_with_what_was_meant(given: str, meant: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        TableOptions.parse({given: "1"})

    assert repr(given) in str(refused.value)
    assert repr(meant) in str(refused.value)


@pytest.mark.parametrize("key", OF_PAIMON)
def test_options_of_other_engines_are_kept_however_near_they_come_to_ours(key: str) -> None:
    assert TableOptions.parse({key: "x"}).others == {key: "x"}


def test_whatever_goes_to_kafka_goes_as_it_is() -> None:
    options = TableOptions.parse(
        {
            "log.kafka.bootstrap.servers": "a:9092,b:9092",
            "log.kafka.topic": "orders",
            "log.kafka.security.protocol": "SASL_SSL",
            "log.kafka.sasl.jaas.config": "secret",
        }
    )

    assert options.log_kafka_bootstrap_servers == "a:9092,b:9092"
    assert options.log_kafka_topic == "orders"
    assert options.log_kafka_client == {"security.protocol": "SASL_SSL", "sasl.jaas.config": "secret"}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("bucket", "many", "whole number"),
        ("bucket", "0", "at least 1"),
        ("write-only", "yes", "true or false"),
        ("target-file-size", "big", "128 mb"),
        ("lease.timeout", "30", "'30 s'"),
        ("lease.timeout", "0 s", "at least '1 ms'"),
        ("log.transaction.timeout", "0 s", "at least '1 ms'"),
        ("log.transaction.timeout", "30 d", "at most '24 d'"),
        ("log.retention", "0 s", "at least '1 ms'"),
        ("log.retention", "999999999999 d", "106751991167 d"),
        ("log.kafka.replication-factor", "0", "at least 1"),
        ("log.scan.timestamp-millis", "-5", "since 1970"),
        ("log.system", "pulsar", "kafka"),
        ("log.scan", "yesterday", "from-timestamp"),
        ("file.format", "csv", "parquet"),
        ("merge-engine", "sum", "deduplicate"),
        ("row-kind.field", " ", "empty"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_key_value_and_remedy(key: str, value: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told) as refused:
        TableOptions.parse({key: value})

    assert key in str(refused.value)
    assert value.strip() in str(refused.value)


def test_a_secret_is_never_shown() -> None:
    options = {"log.kafka.sasl.password": "hunter2", "log.kafka.topic": "orders"}

    assert masked(options) == {"log.kafka.sasl.password": "******", "log.kafka.topic": "orders"}
    for key in ("log.kafka.sasl.jaas.config", "log.kafka.ssl.keystore.password", "fs.s3.secret-key"):
        assert is_secret(key)


@pytest.mark.parametrize(
    ("mode", "has_primary_key", "effective"),
    [
        ("auto", True, ChangelogMode.UPSERT),
        ("auto", False, ChangelogMode.ALL),
        ("all", True, ChangelogMode.ALL),
        ("upsert", True, ChangelogMode.UPSERT),
    ],
)
def test_auto_means_upsert_with_a_key_and_all_without(
    mode: str,
    has_primary_key: bool,  # noqa: FBT001
    effective: ChangelogMode,
) -> None:
    options = TableOptions.parse({"log.changelog-mode": mode})

    assert options.effective_changelog_mode(has_primary_key=has_primary_key) is effective


def test_the_log_is_kafka_once_servers_are_known() -> None:
    assert TableOptions.parse({}).effective_log_system is LogSystem.NONE
    assert TableOptions.parse({"log.kafka.bootstrap.servers": "a:9092"}).effective_log_system is LogSystem.KAFKA
    known = {"log.kafka.bootstrap.servers": "a:9092", "log.system": "none"}
    assert TableOptions.parse(known).effective_log_system is LogSystem.NONE


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("17", 17), ("5 b", 5), ("1k", 1024), ("1 KB", 1024), (" 128 mb ", 128 << 20), ("2g", 2 << 30)],
)
def test_sizes_are_powers_of_two(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("500 ms", 500),
        ("30 s", 30_000),
        ("10min", 600_000),
        ("10 m", 600_000),
        ("1 h", 3_600_000),
        ("7 d", 604_800_000),
    ],
)
def test_durations_have_a_unit(text: str, millis: int) -> None:
    assert parse_millis(text) == millis


@pytest.mark.parametrize("text", ["", "mb", "-1 mb", "1.5 mb", "1 parsec", "1 mb 2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="128 mb"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["", "30", "s", "-1 s", "1 month"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="7 d"):
        parse_millis(text)


def test_booleans_and_numbers_are_spelled_out() -> None:
    assert parse_boolean(" False ") is False
    assert parse_integer("-7") == -7
    for text in ("1", "", "on"):
        with pytest.raises(ValueError, match="true or false"):
            parse_boolean(text)
    for text in ("1.0", "", "seven"):
        with pytest.raises(ValueError, match="whole number"):
            parse_integer(text)


def test_the_current_key_of_an_option_is_its_own_current_key() -> None:
    chance = random.Random(11)  # noqa: S311  repeatable
    keys = [*option_keys(), *older_spellings(), "log.properties.x", "column.v.expression", ""]
    for _ in range(300):
        spelled = SESSION_PREFIX * chance.randint(0, 3) + chance.choice(keys)
        key = canonical_key(spelled)
        assert canonical_key(key) == key, spelled
        assert canonical_key(f"{SESSION_PREFIX}{spelled}") == key, spelled
