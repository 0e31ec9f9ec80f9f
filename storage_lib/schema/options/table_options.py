"""All options of tables: key, type, default and meaning, one line each. Source of ``option_reference``."""

# ruff: noqa: RUF009  the calls in defaults only create fields

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from functools import cache
from typing import Any

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.extensions import Extension, added_names
from storage_lib.schema.options.external_paths import (
    PATHS_OPTION,
    ROOT_PATH_OPTION,
    SPECIFIC_FS_OPTION,
    STRATEGY_OPTION,
    WEIGHTS_OPTION,
    ExternalPathStrategy,
)
from storage_lib.schema.options.materialized_table import (
    CATALOGS_OPTION,
    COLUMNS_OPTION,
    DATABASE_OPTION,
    FRESHNESS_OPTION,
    FRESHNESS_UNIT_OPTION,
    LOGICAL_MODE_OPTION,
    MODE_OPTION,
    QUERY_OPTION,
    SETTINGS_OPTION,
    SOURCES_OPTION,
    STATUS_OPTION,
    TARGET_LAG_OPTION,
    CatalogOfQuery,
    FreshnessUnit,
    MaterializedTableDefinition,
    RefreshMode,
    RefreshStatus,
    TargetLag,
    parse_catalogs,
    parse_refresh_mode,
    parse_refresh_status,
    parse_source_columns,
    stored_freshness,
)
from storage_lib.schema.options.nearest import nearest
from storage_lib.schema.options.option_values import (
    parse_boolean,
    parse_bucket_count,
    parse_bucket_limit,
    parse_by_level,
    parse_bytes,
    parse_count,
    parse_directory_name,
    parse_integer,
    parse_level_count,
    parse_millis,
    parse_moment,
    parse_names,
    parse_number,
    parse_replication,
    parse_retention,
    parse_size,
    parse_text,
    parse_wait,
    parse_word,
    parse_zstd_level,
)
from storage_lib.schema.options.secret_text import MASK, holds_secret, without_password
from storage_lib.schema.options.value_settings import parse_settings
from storage_lib.schema.table_schema import APPEND_ONLY, VALUE_COUNT, WRITE_MODE_OPTION
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN

FILE_FORMATS = ("parquet", "orc", "avro")
KAFKA_PREFIX = "log.kafka."
REGISTRY_PREFIX = "log.schema-registry."
OWN_PREFIX = "dynamic-table."
UUID_OPTION = f"{OWN_PREFIX}uuid"
"""Option that identifies a table created by this library, even if a dropped table had the same name."""
SESSION_PREFIX = "table-storage."
_SECRET_WORDS = (
    "password",
    "secret",
    "token",
    "jaas",
    "credential",
    "access.key",
    "account.key",
    "sas.key",
    "encryption.key",
    "passphrase",
    "passwd",
    "private.key",
    "keystore.key",
    "key.pem",
    "api.key",
    "apikey",
    "connection.string",
    "user.info",
    "authorization",
    "pwd",
    "jdbc.pass",
    "signing.key",
    "jwt",
)
_INT_MAX = 2147483647


class MergeEngine(StrEnum):
    """Rule that merges the versions of a key into one row."""

    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"
    FIRST_ROW = "first-row"
    VALUE_COUNT = VALUE_COUNT

    @property
    def needs_old_rows(self) -> bool:
        """Whether a change of a row has to tell the whole old row, because rows of a key are combined or counted."""
        return self in (MergeEngine.AGGREGATION, MergeEngine.VALUE_COUNT)

    @property
    def keeps_nulls(self) -> bool:
        """Whether a null leaves the stored value as it is."""
        return self in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION)


class ChangelogProducer(StrEnum):
    """Time at which changelog files for streams of other engines are written."""

    NONE = "none"
    INPUT = "input"
    LOOKUP = "lookup"
    FULL_COMPACTION = "full-compaction"


class SortOrder(StrEnum):
    """Order of a sequence field: whether the greater or the smaller value is newer."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


class WriteMode(StrEnum):
    """Kinds of rows that a table accepts."""

    CHANGE_LOG = "change-log"
    APPEND_ONLY = APPEND_ONLY


class LogFormat(StrEnum):
    """Format of the log's values."""

    DEBEZIUM_JSON = "debezium-json"
    DEBEZIUM_AVRO = "debezium-avro"


class LogKeyFormat(StrEnum):
    """Format of the log's keys."""

    JSON = "json"
    AVRO = "avro"


class LogSystem(StrEnum):
    """System that stores the log."""

    NONE = "none"
    KAFKA = "kafka"


class CompactionStrategyName(StrEnum):
    """Strategy that chooses the files to compact."""

    UNIVERSAL = "universal"
    LEVELED = "leveled"


class LogConsistency(StrEnum):
    """Time at which changes in the log become visible."""

    TRANSACTIONAL = "transactional"
    EVENTUAL = "eventual"


class ChangelogMode(StrEnum):
    """Whether the log contains pre-images of updates."""

    AUTO = "auto"
    UPSERT = "upsert"
    ALL = "all"


class UpdateBeforeSource(StrEnum):
    """Source of pre-images and deleted rows in a log that contains them."""

    LOOKUP = "lookup"
    INPUT = "input"


class StartupMode(StrEnum):
    """Position at which a stream read starts."""

    FULL = "full"
    LATEST = "latest"
    FROM_TIMESTAMP = "from-timestamp"


class OnCorrupt(StrEnum):
    """Treatment of records of a topic that are not valid changes."""

    FAIL = "fail"
    SKIP = "skip"
    """Skip it with a warning."""


class ScanNormalize(StrEnum):
    """Way in which a stream of upserts obtains pre-images."""

    NONE = "none"
    LOOKUP = "lookup"
    STATE = "state"


class UntrackedScan(StrEnum):
    """Treatment of untracked commits by a stream reader."""

    IGNORE = "ignore"
    WARN = "warn"
    FAIL = "fail"


class IcebergStorage(StrEnum):
    """Place of the metadata of a table's Iceberg view."""

    DISABLED = "disabled"
    TABLE_LOCATION = "table-location"
    HADOOP_CATALOG = "hadoop-catalog"
    HIVE_CATALOG = "hive-catalog"
    REST_CATALOG = "rest-catalog"

    @property
    def is_registered(self) -> bool:
        """Whether the table has an entry in a catalog of others."""
        return self in (IcebergStorage.HIVE_CATALOG, IcebergStorage.REST_CATALOG)


class IcebergVersion(IntEnum):
    """Version of Iceberg's table format: position delete files, or deletion vectors and ids of rows."""

    V2 = 2
    V3 = 3


def _parse_iceberg_version(text: str) -> IcebergVersion:
    found = {str(int(each)): each for each in IcebergVersion}.get(text.strip())
    if found is None:
        message = "it has to be 2 or 3"
        raise ValueError(message)
    return found


def _parse_iceberg_storage(text: str) -> IcebergStorage | str:
    """Return the place, or the word of another engine, whose table can still be read; CREATE and ALTER refuse it."""
    word = text.strip().lower()
    return IcebergStorage(word) if word in set(IcebergStorage) else word


def _parse_log_system(text: str) -> LogSystem | str:
    word = text.strip().lower()
    return word if word in added_names(Extension.LOG_SYSTEMS) else parse_word(LogSystem)(text)


def _option(key: str, default: object, parse: Callable[[str], object], text: str) -> Any:
    return field(default=default, metadata={"key": key, "parse": parse, "text": text})


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Parsed options of a table. ``others`` holds keys that this version does not interpret (mostly Paimon's)."""

    # fmt: off  one line an option
    bucket: int = _option(
        "bucket",
        1,
        parse_bucket_count,
        "Number of buckets of every partition and of Kafka partitions of the log. -1: dynamic buckets for a table with "
        "a primary key; for an append-only table rows have no bucket (its default).",
    )
    dynamic_bucket_target_row_num: int = _option(
        "dynamic-bucket.target-row-num",
        2_000_000,
        parse_count,
        "With bucket=-1 and a key: target number of keys per bucket; further keys go to a new bucket.",
    )
    dynamic_bucket_initial_buckets: int | None = _option(
        "dynamic-bucket.initial-buckets",
        None,
        parse_count,
        "With bucket=-1 and a key: number of buckets over which the first keys of a new partition are spread.",
    )
    dynamic_bucket_assigner_parallelism: int | None = _option(
        "dynamic-bucket.assigner-parallelism",
        None,
        parse_count,
        "With bucket=-1 and a key: number of tasks of a Spark write that assign buckets in parallel, each with its own "
        "keys and buckets; default: `dynamic-bucket.initial-buckets`, or one.",
    )
    dynamic_bucket_max_buckets: int = _option(
        "dynamic-bucket.max-buckets",
        -1,
        parse_bucket_limit,
        "With bucket=-1 and a key: maximum number of buckets per partition; at the limit, new keys go to full buckets. "
        "-1: no limit.",
    )
    write_mode: WriteMode = _option(
        WRITE_MODE_OPTION,
        WriteMode.CHANGE_LOG,
        parse_word(WriteMode),
        "change-log, or append-only for a table without primary key that accepts inserts only (a Paimon append table).",
    )
    file_format: str = _option(
        "file.format",
        "parquet",
        parse_text,
        "Format of new data files: parquet, orc, avro, or a format added by a package.",
    )
    file_compression: str = _option(
        "file.compression",
        "zstd",
        parse_text,
        "Codec of new data files. Parquet: zstd, snappy, gzip, lz4, brotli or none; ORC: zstd, zlib, snappy, lz4 or "
        "none; Avro: zstd, deflate or none.",
    )
    file_compression_zstd_level: int = _option(
        "file.compression.zstd-level", 1, parse_zstd_level, "Level of the zstd codec."
    )
    file_format_per_level: Mapping[int, str] | None = _option(
        "file.format.per.level",
        None,
        parse_by_level,
        "Formats of new data files by level for a table with a key, such as `0:avro,5:parquet`; other levels use "
        "`file.format`. A file that a compaction only moves to another level keeps its format.",
    )
    file_compression_per_level: Mapping[int, str] | None = _option(
        "file.compression.per.level",
        None,
        parse_by_level,
        "Codecs of new data files by level, such as `0:lz4,5:zstd`; other levels use `file.compression`.",
    )
    file_root_path: str | None = _option(
        ROOT_PATH_OPTION,
        None,
        parse_text,
        "Root directory for a new table's data files, separate from its metadata; a path or a URL. Files go to "
        "`<root>/<database>.db/<table>`. "
        "Stored as `data-file.external-paths` with `data-file.external-paths.strategy=round-robin`.",
    )
    data_file_external_paths: str | None = _option(
        PATHS_OPTION,
        None,
        parse_text,
        "Comma-separated URLs of directories for new data files outside of the table's own directory; each may belong "
        "to one table only. Changing the option does not move existing files.",
    )
    data_file_external_paths_strategy: ExternalPathStrategy = _option(
        STRATEGY_OPTION,
        ExternalPathStrategy.NONE,
        parse_word(ExternalPathStrategy),
        "How the external directory of a new file is chosen: round-robin, weight-robin (by weight), entropy-inject "
        "(round-robin, in subdirectories by a hash of the file name), specific-fs (directories of one scheme only), or "
        "none (the table's own directory).",
    )
    data_file_external_paths_specific_fs: str | None = _option(
        SPECIFIC_FS_OPTION, None, parse_text, "URL scheme that strategy specific-fs selects, such as s3."
    )
    data_file_external_paths_weights: str | None = _option(
        WEIGHTS_OPTION, None, parse_text, "Weights for strategy weight-robin: one positive integer per directory."
    )
    target_file_size_bytes: int = _option(
        "target-file-size", 128 << 20, parse_size, "Size at which a data file is closed and a new one started."
    )
    write_buffer_size_bytes: int = _option(
        "write-buffer-size",
        256 << 20,
        parse_size,
        "Memory for the buffered rows of a bucket; a full buffer is flushed to files.",
    )
    lookup_cache_max_memory_size: int = _option(
        "lookup.cache-max-memory-size",
        64 << 20,
        parse_size,
        "Memory per opened table to cache keys of data files for lookups and for commits with an Iceberg view, so that "
        "later ones open only files that contain their keys. Lookups use it for keys of one integer column in Parquet "
        "files. Commits with a view hold an index of as much at most besides.",
    )
    write_only: bool = _option(
        "write-only", default=False, parse=parse_boolean, text="Writers do not compact; dedicated jobs do."
    )
    merge_engine: MergeEngine = _option(
        "merge-engine",
        MergeEngine.DEDUPLICATE,
        parse_word(MergeEngine),
        "How versions of one key are merged into one row: deduplicate, partial-update, aggregation or first-row.",
    )
    changelog_producer: ChangelogProducer = _option(
        "changelog-producer",
        ChangelogProducer.NONE,
        parse_word(ChangelogProducer),
        "When to write changelog files for streaming reads by other Paimon engines: none, input (the rows as written), "
        "lookup (at the compaction after each commit) or full-compaction (at each full compaction).",
    )
    changelog_row_deduplicate: bool = _option(
        "changelog-producer.row-deduplicate",
        default=False,
        parse=parse_boolean,
        text="Omit updates that change no value from the changelog of producers lookup and full-compaction.",
    )
    full_compaction_delta_commits: int = _option(
        "full-compaction.delta-commits",
        1,
        parse_count,
        "With changelog-producer=full-compaction: number of commits after which writers run a full compaction.",
    )
    force_lookup: bool = _option(
        "force-lookup",
        default=False,
        parse=parse_boolean,
        text="Compact level 0 at each commit with lookups in deeper levels, as changelog-producer=lookup does.",
    )
    sequence_field: tuple[str, ...] = _option(
        "sequence.field", (), parse_names, "Columns that decide which version of a key is newer; default: commit order."
    )
    sequence_field_sort_order: SortOrder = _option(
        "sequence.field.sort-order",
        SortOrder.ASCENDING,
        parse_word(SortOrder),
        "ascending: the version with the greater sequence field is newer; descending: the one with the smaller.",
    )
    compaction_keep_deletes: bool = _option(
        "compaction.keep-deletes",
        default=False,
        parse=parse_boolean,
        text="Keep the deletions of keys in compacted files, so that a row with a smaller sequence.field that is "
        "written later stays deleted. A rewrite of the buckets and compactions by other engines drop them.",
    )
    ignore_delete: bool = _option(
        "ignore-delete", default=False, parse=parse_boolean, text="Ignore input rows of kind -U and -D."
    )
    partial_update_remove_record_on_delete: bool = _option(
        "partial-update.remove-record-on-delete",
        default=False,
        parse=parse_boolean,
        text="A -D removes the whole row of a partial-update table.",
    )
    partial_update_remove_record_on_sequence_group: tuple[str, ...] = _option(
        "partial-update.remove-record-on-sequence-group",
        default=(),
        parse=parse_names,
        text="Sequence fields of groups: a -D that is not older than the group's newest row removes the whole row.",
    )
    aggregation_remove_record_on_delete: bool = _option(
        "aggregation.remove-record-on-delete",
        default=False,
        parse=parse_boolean,
        text="A -D removes the whole row of an aggregation table instead of retracting its values.",
    )
    num_levels: int | None = _option(
        "num-levels",
        None,
        parse_level_count,
        "Number of levels of the LSM tree; default: the compaction trigger plus one.",
    )
    num_sorted_run_compaction_trigger: int = _option(
        "num-sorted-run.compaction-trigger",
        5,
        parse_count,
        "Number of sorted runs in a bucket that triggers a compaction.",
    )
    num_sorted_run_stop_trigger: int | None = _option(
        "num-sorted-run.stop-trigger",
        None,
        parse_count,
        "Number of sorted runs in a bucket at which its writer compacts before it accepts more rows; default: never.",
    )
    compaction_strategy: CompactionStrategyName = _option(
        "compaction.strategy",
        CompactionStrategyName.UNIVERSAL,
        parse_word(CompactionStrategyName),
        "universal: lower write amplification; leveled: lower read and space amplification. Other engines ignore it.",
    )
    compaction_level0_file_num_trigger: int = _option(
        "compaction.level0-file-num-trigger",
        4,
        parse_count,
        "Leveled: number of level-0 files that triggers a compaction.",
    )
    compaction_max_bytes_for_level_base: int = _option(
        "compaction.max-bytes-for-level-base",
        1 << 30,
        parse_bytes,
        "Leveled: target size of the first level below level 0.",
    )
    compaction_max_bytes_for_level_multiplier: int = _option(
        "compaction.max-bytes-for-level-multiplier",
        5,
        parse_count,
        "Leveled: ratio of the target sizes of a level and the level above it.",
    )
    compaction_max_size_amplification_percent: int = _option(
        "compaction.max-size-amplification-percent",
        200,
        parse_count,
        "Universal: size of the younger runs, in percent of the oldest run, that triggers a full compaction.",
    )
    compaction_min_file_num: int = _option(
        "compaction.min.file-num",
        5,
        parse_count,
        "Number of small files in a bucket of an append-only table that triggers their compaction.",
    )
    compaction_size_ratio: int = _option(
        "compaction.size-ratio",
        1,
        parse_integer,
        "Universal: percentage by which the next run may be larger and still be merged.",
    )
    manifest_target_file_size_bytes: int = _option(
        "manifest.target-file-size", 8 << 20, parse_size, "Size at which a manifest is closed and a new one started."
    )
    manifest_merge_min_count: int = _option(
        "manifest.merge-min-count", 30, parse_count, "Number of small manifests at which a commit merges them."
    )
    manifest_full_compaction_size_bytes: int = _option(
        "manifest.full-compaction-threshold-size",
        16 << 20,
        parse_bytes,
        "Size of the manifests added since the last full rewrite that triggers the next one.",
    )
    metadata_stats_mode: str = _option(
        "metadata.stats-mode", "truncate(16)", parse_text, "Statistics of a data file's columns."
    )
    partition_default_name: str = _option(
        "partition.default-name",
        "__DEFAULT_PARTITION__",
        parse_directory_name,
        "Directory name for a null or blank partition value.",
    )
    partition_legacy_name: bool = _option(
        "partition.legacy-name",
        default=True,
        parse=parse_boolean,
        text="Name DATE partitions by epoch days; new tables store false.",
    )
    iceberg_storage: IcebergStorage | str = _option(
        "metadata.iceberg.storage",
        IcebergStorage.DISABLED,
        _parse_iceberg_storage,
        "Publish an Iceberg view of the table after each commit, with the rows of that snapshot: table-location "
        "puts its metadata into the table's directory, hadoop-catalog into `<warehouse>/iceberg`, an Iceberg Hadoop "
        "catalog; hive-catalog and rest-catalog do so too, and register the table in the Hive metastore or the REST "
        "catalog that the connection names (iceberg.hive.uri, iceberg.rest.uri); disabled: no view. For Parquet files. "
        "With partial-update and aggregation it shows the snapshots whose rows compactions have merged.",
    )
    iceberg_version: IcebergVersion = _option(
        "metadata.iceberg.format-version",
        IcebergVersion.V3,
        _parse_iceberg_version,
        "Version of Iceberg's format that readers of the view have to know: 3 hides rows by deletion vectors, 2 by "
        "position delete files, for engines that refuse version 3. The view begins again when it is changed.",
    )
    iceberg_database: str | None = _option(
        "metadata.iceberg.database",
        None,
        parse_text,
        "Database of the entry that hive-catalog and rest-catalog keep; default: the table's own.",
    )
    iceberg_table: str | None = _option(
        "metadata.iceberg.table",
        None,
        parse_text,
        "Name of that entry in its database; default: the table's own.",
    )
    delta_enabled: bool = _option(
        "metadata.delta.enabled",
        default=False,
        parse=parse_boolean,
        text="Also write a log for readers of Delta Lake, `_delta_log` in the table's directory, in the step that "
        "publishes the Iceberg view (metadata.iceberg.storage), which it follows.",
    )
    snapshot_num_retained_min: int = _option(
        "snapshot.num-retained.min",
        10,
        parse_count,
        "Minimum number of snapshots that commits of other engines retain; new tables store the maximum.",
    )
    snapshot_num_retained_max: int = _option(
        "snapshot.num-retained.max",
        _INT_MAX,
        parse_count,
        "Number of snapshots above which commits of other engines expire them.",
    )
    snapshot_time_retained_ms: int = _option(
        "snapshot.time-retained",
        3_600_000,
        parse_millis,
        "Age below which commits of other engines expire no snapshot.",
    )
    commit_identity_time_retained_ms: int = _option(
        "commit.identity-time-retained",
        30 * 24 * 3_600_000,
        parse_millis,
        "How long a commit is recognised when it is repeated under its commit user and identifier after its snapshot "
        "has expired: longer than any task or stream may repeat it. The last 1000 commits of a table are kept whatever "
        "their age, at most 10000 for each user.",
    )
    rejected_retention_ms: int = _option(
        "rejected.retention",
        30 * 24 * 3_600_000,
        parse_millis,
        "How long rejected records of sources (<table>$rejected) are kept. A commit removes older ones, file by file: "
        "up to an eighth of this time later. Their files are deleted with the last snapshot that names them.",
    )
    changelog_num_retained_min: int | None = _option(
        "changelog.num-retained.min",
        None,
        parse_count,
        "Minimum number of snapshots whose changelog is retained after they expire; default: "
        "snapshot.num-retained.min.",
    )
    changelog_num_retained_max: int | None = _option(
        "changelog.num-retained.max",
        None,
        parse_count,
        "Number of snapshots above which changelogs expire as well; default: snapshot.num-retained.max.",
    )
    changelog_time_retained_ms: int | None = _option(
        "changelog.time-retained",
        None,
        parse_millis,
        "Age below which no changelog expires; default: snapshot.time-retained.",
    )
    deletion_vectors_enabled: bool = _option(
        "deletion-vectors.enabled",
        default=False,
        parse=parse_boolean,
        text="Compactions mark old versions as deleted in deletion vectors, so that reads need not merge.",
    )
    deletion_vectors_merge_on_read: bool = _option(
        "deletion-vectors.merge-on-read",
        default=False,
        parse=parse_boolean,
        text="With deletion vectors: whether batch reads include rows not yet compacted; new tables store true.",
    )
    source_split_target_size_bytes: int = _option(
        "source.split.target-size",
        128 << 20,
        parse_size,
        "Target size of a split, if a bucket can be split between keys.",
    )
    change_tracking: bool = _option(
        "change-tracking",
        default=True,
        parse=parse_boolean,
        text="Whether changes are written to the log; also an option of a single write.",
    )
    row_kind_field: str = _option(
        "row-kind.field",
        ROW_KIND_COLUMN,
        parse_text,
        "Name of the reserved column that holds the row kind: +I, -U, +U or -D.",
    )
    log_system: LogSystem | str | None = _option(
        "log.system",
        None,
        _parse_log_system,
        "kafka, none, or a log system added by a package; default: kafka if bootstrap servers are set.",
    )
    log_kafka_bootstrap_servers: str | None = _option(
        "log.kafka.bootstrap.servers",
        None,
        parse_text,
        "Comma-separated host:port list of Kafka brokers; usually set on the connection.",
    )
    log_kafka_topic: str | None = _option(
        "log.kafka.topic", None, parse_text, "Topic of the log; default: database.table."
    )
    log_kafka_replication_factor: int = _option(
        "log.kafka.replication-factor",
        -1,
        parse_replication,
        "Replication factor of the topic; -1: the brokers' default.",
    )
    log_retention_ms: int | None = _option(
        "log.retention", None, parse_retention, "How long the log retains changes; default: the brokers' default."
    )
    log_consistency: LogConsistency = _option(
        "log.consistency",
        LogConsistency.TRANSACTIONAL,
        parse_word(LogConsistency),
        "transactional: changes become visible with the snapshot, exactly once. eventual: changes become visible when "
        "written, at least once, and files are written later; a write that is repeated appends its changes to the log "
        "again.",
    )
    log_tier_interval_ms: int = _option(
        "log.tier-interval",
        60_000,
        parse_millis,
        "With log.consistency=eventual: how often a stream writes the log's changes to files.",
    )
    log_changelog_mode: ChangelogMode = _option(
        "log.changelog-mode",
        ChangelogMode.AUTO,
        parse_word(ChangelogMode),
        "upsert: the log omits pre-images of updates; all: it contains them; auto: upsert with a primary key, all "
        "without. Set all for a table whose topic other programs read: Flink's decoder, for example, needs them.",
    )
    write_produce_update_before: UpdateBeforeSource = _option(
        "write.produce-update-before",
        UpdateBeforeSource.LOOKUP,
        parse_word(UpdateBeforeSource),
        "Source of pre-images for log.changelog-mode=all with a primary key: lookup reads them from the table, input "
        "expects them in the input. A commit whose changes do not follow from the stored rows (a +U without its -U, a "
        "+I of an existing key, a -U or -D of another row) is refused.",
    )
    log_format: LogFormat = _option(
        "log.format",
        LogFormat.DEBEZIUM_JSON,
        parse_word(LogFormat),
        "Format of the log's values: debezium-json, or debezium-avro with a schema registry "
        "(log.schema-registry.url, .username, .password, usually set on the connection).",
    )
    log_key_format: LogKeyFormat = _option(
        "log.key.format",
        LogKeyFormat.JSON,
        parse_word(LogKeyFormat),
        "Format of the log's keys: json, or avro with log.format=debezium-avro.",
    )
    log_transaction_timeout_ms: int = _option(
        "log.transaction.timeout", 600_000, parse_wait, "Time after which Kafka aborts an open transaction."
    )
    log_scan: StartupMode = _option(
        "log.scan",
        StartupMode.FULL,
        parse_word(StartupMode),
        "Where a stream starts: full (the newest snapshot, then later changes), latest (later changes only) or "
        "from-timestamp (changes since log.scan.timestamp-millis).",
    )
    log_scan_timestamp_millis: int | None = _option(
        "log.scan.timestamp-millis", None, parse_moment, "For log.scan=from-timestamp: epoch milliseconds."
    )
    log_scan_on_corrupt: OnCorrupt = _option(
        "log.scan.on-corrupt",
        OnCorrupt.FAIL,
        parse_word(OnCorrupt),
        "How to treat a corrupt record of another program in the log: fail, or skip it with a warning.",
    )
    lease_timeout_ms: int = _option(
        "lease.timeout", 30_000, parse_wait, "Time after which a writer's lease expires if it is not renewed."
    )
    lease_wait_timeout_ms: int = _option(
        "lease.wait-timeout", 600_000, parse_millis, "Maximum time a writer waits for the lease."
    )
    scan_normalize: ScanNormalize = _option(
        "scan.normalize",
        ScanNormalize.NONE,
        parse_word(ScanNormalize),
        "Source of the pre-images that a stream adds to upserts of a table with a primary key: none (emit the log as "
        "it is), lookup (read them from the files) or state (keep the rows in the stream's state; needs a log). Also "
        "an option of a single read.",
    )
    scan_snapshot_id: int | None = _option(
        "scan.snapshot-id", None, parse_count, "Read this snapshot instead of the newest."
    )
    scan_tag_name: str | None = _option("scan.tag-name", None, parse_text, "Read the snapshot that this tag keeps.")
    scan_timestamp_millis: int | None = _option(
        "scan.timestamp-millis",
        None,
        parse_moment,
        "Read the newest snapshot created at or before this time (epoch milliseconds).",
    )
    scan_on_untracked: UntrackedScan = _option(
        "scan.on-untracked",
        UntrackedScan.IGNORE,
        parse_word(UntrackedScan),
        "How a stream treats a commit whose changes were not logged (an untracked overwrite, drop or append): ignore "
        "it, warn (log a warning that names it), or fail before emitting any later change. Also an option of a single "
        "read.",
    )
    materialized_query: str | None = _option(
        QUERY_OPTION,
        None,
        parse_text,
        "Query of a materialized table, in Spark's SQL; refreshes keep the table equal to its answer. Set by CREATE "
        "and ALTER MATERIALIZED TABLE, as are the options that follow.",
    )
    materialized_database: str = _option(
        DATABASE_OPTION, "", parse_text, "Database of names without one in a materialized table's query."
    )
    materialized_sources: tuple[str, ...] = _option(
        SOURCES_OPTION, (), parse_names, "Comma-separated tables that a materialized table's query reads."
    )
    materialized_settings: tuple[tuple[str, str], ...] | None = _option(
        SETTINGS_OPTION,
        None,
        parse_settings,
        "Settings of Spark under which a materialized table is refreshed: those of the session that created it or gave "
        "it its query, as a JSON object without the usual ones. Default: those of the session that refreshes it.",
    )
    materialized_columns: tuple[tuple[str, tuple[str, ...]], ...] | None = _option(
        COLUMNS_OPTION,
        None,
        parse_source_columns,
        "Columns of the sources for which `*` stands in a materialized table's query, as a JSON object: those at the "
        "time when it was given its query. Default: all columns.",
    )
    materialized_catalogs: tuple[CatalogOfQuery, ...] = _option(
        CATALOGS_OPTION,
        (),
        parse_catalogs,
        "Catalogs of other formats whose tables a materialized table's query reads, as a JSON object: by name the "
        "`options` by which a refresh opens it, the names of its secret options (`withheld`), and the `tables`.",
    )
    materialized_freshness: int | None = _option(
        FRESHNESS_OPTION,
        None,
        parse_count,
        "Maximum time that a materialized table may lag behind its sources, in the unit of "
        "`materialized-table.interval-freshness.time-unit`; default: refreshed on request.",
    )
    materialized_freshness_unit: FreshnessUnit = _option(
        FRESHNESS_UNIT_OPTION,
        FreshnessUnit.SECOND,
        parse_word(FreshnessUnit),
        "Unit of the freshness: second, minute, hour or day.",
    )
    materialized_target_lag: TargetLag | None = _option(
        TARGET_LAG_OPTION,
        None,
        parse_word(TargetLag),
        "When a materialized table without a freshness is refreshed: downstream, before each refresh of a materialized "
        "table that reads it; default: as without this option.",
    )
    materialized_logical_mode: RefreshMode = _option(
        LOGICAL_MODE_OPTION,
        RefreshMode.AUTO,
        parse_refresh_mode,
        "How a materialized table is refreshed: auto (incrementally if its query allows it), incremental (other "
        "queries are refused), or full (the whole query each time). Stored with Flink's words: AUTOMATIC, CONTINUOUS "
        "or FULL.",
    )
    materialized_mode: RefreshMode = _option(
        MODE_OPTION,
        RefreshMode.INCREMENTAL,
        parse_refresh_mode,
        "Refresh mode that Flink derives from the logical one; no effect here: auto, incremental (CONTINUOUS) or full.",
    )
    materialized_status: RefreshStatus = _option(
        STATUS_OPTION,
        RefreshStatus.ACTIVATED,
        parse_refresh_status,
        "Whether schedulers refresh a materialized table: activated or suspended.",
    )
    accumulators_rows_min: int = _option(
        "accumulators.rows-min",
        3_000_000,
        parse_number,
        "Rows of its sources, in their files, from which on a materialized table keeps accumulators for counts and "
        "sums; with fewer rows, groups that a change touches are computed again, which is faster. 0: always.",
    )
    in_process_size_max: int = _option(
        "refresh.in-process-size-max",
        512 << 20,
        parse_bytes,
        "Size of the files that a refresh of a materialized table reads, up to which DuckDB computes it in the process "
        "that asks for it, if it is installed and gives Spark's values; otherwise Spark does. 0: always Spark.",
    )
    # fmt: on
    log_kafka_client: Mapping[str, str] = field(default_factory=dict)
    log_schema_registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def definition(self) -> MaterializedTableDefinition | None:
        """The query of a materialized table with its settings; None for an ordinary table."""
        if self.materialized_query is None:
            return None
        return MaterializedTableDefinition(
            query=self.materialized_query,
            database=self.materialized_database,
            sources=self.materialized_sources,
            freshness=stored_freshness(
                self.materialized_freshness, self.materialized_freshness_unit, self.materialized_target_lag
            ),
            refresh_mode=self.materialized_logical_mode,
            status=self.materialized_status,
            settings=self.materialized_settings,
            columns=self.materialized_columns,
            catalogs=self.materialized_catalogs,
        )

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TableOptions:
        """Parse options by key, including older keys; ``log.kafka.*`` is passed to the client unchanged.

        Raises ``InvalidInputError`` for an invalid value, a key that looks misspelled, and unsupported features.
        """
        values: dict[str, Any] = {}
        client: dict[str, str] = {}
        registry: dict[str, str] = {}
        others: dict[str, str] = {}
        for given, text in options.items():
            key = canonical_key(given)
            known = _BY_KEY.get(key)
            if known is not None:
                values[known.name] = _parsed(
                    given, _OLDER_VALUES.get((key, str(text)), str(text)), known.metadata["parse"]
                )
            elif key.startswith(KAFKA_PREFIX):
                client[key.removeprefix(KAFKA_PREFIX)] = str(text)
            elif key.startswith(REGISTRY_PREFIX):
                registry[key.removeprefix(REGISTRY_PREFIX)] = str(text)
            else:
                _refuse_slip(given, key)
                others[key] = str(text)
        parsed = cls(**values, log_kafka_client=client, log_schema_registry=registry, others=others)
        parsed._refuse_unsupported()
        return parsed

    @property
    def effective_changelog_num_retained_min(self) -> int:
        """Minimum number of retained changelogs; default: that of snapshots."""
        return self.changelog_num_retained_min or self.snapshot_num_retained_min

    @property
    def others_expire(self) -> bool:
        """Whether the commits of other engines may expire snapshots."""
        return self.snapshot_num_retained_min < _INT_MAX

    @property
    def effective_changelog_num_retained_max(self) -> int:
        """Maximum number of retained changelogs; default: that of snapshots."""
        return self.changelog_num_retained_max or self.snapshot_num_retained_max

    @property
    def effective_changelog_time_retained_ms(self) -> int:
        """Retention time of changelogs in milliseconds; default: that of snapshots."""
        given = self.changelog_time_retained_ms
        return self.snapshot_time_retained_ms if given is None else given

    @property
    def keeps_changelogs(self) -> bool:
        """Whether changelogs outlive their snapshots, because an option retains more of them than of snapshots."""
        return (
            self.effective_changelog_num_retained_max > self.snapshot_num_retained_max
            or self.effective_changelog_time_retained_ms > self.snapshot_time_retained_ms
            or self.effective_changelog_num_retained_min > self.snapshot_num_retained_min
        )

    @property
    def looks_up(self) -> bool:
        """Whether rows above level 0 are complete, so that a key's row in the lowest such level is its current row.

        Compactions of level 0 look up its keys in deeper levels. Other engines, or their streams, do not read level 0
        of such tables.
        """
        return (
            self.changelog_producer is ChangelogProducer.LOOKUP
            or self.deletion_vectors_enabled
            or self.merge_engine is MergeEngine.FIRST_ROW
            or self.force_lookup
        )

    @property
    def compacts_at_commit(self) -> bool:
        """Whether other engines, or their streams, see a commit only once it has been compacted."""
        return self.looks_up or self.changelog_producer is ChangelogProducer.FULL_COMPACTION

    @property
    def newest_wins(self) -> bool:
        """Whether a key's row is its last committed version, unchanged."""
        return self.merge_engine is MergeEngine.DEDUPLICATE and not self.sequence_field

    @property
    def removes_on_delete(self) -> bool:
        """Whether a ``-D`` removes the row that a partial-update or aggregation table has merged for its key."""
        return {
            MergeEngine.PARTIAL_UPDATE: self.partial_update_remove_record_on_delete,
            MergeEngine.AGGREGATION: self.aggregation_remove_record_on_delete,
        }.get(self.merge_engine, False)

    @property
    def effective_log_system(self) -> LogSystem | str:
        """``log.system``; if unset, Kafka if bootstrap servers are set, else none."""
        if self.log_system is not None:
            return self.log_system
        return LogSystem.NONE if self.log_kafka_bootstrap_servers is None else LogSystem.KAFKA

    def effective_changelog_mode(self, *, has_primary_key: bool) -> ChangelogMode:
        """``log.changelog-mode`` with ``auto`` resolved."""
        if self.log_changelog_mode is not ChangelogMode.AUTO:
            return self.log_changelog_mode
        return ChangelogMode.UPSERT if has_primary_key else ChangelogMode.ALL

    @property
    def effective_num_levels(self) -> int:
        """``num-levels``, or the compaction trigger plus one."""
        return self.num_levels or self.num_sorted_run_compaction_trigger + 1

    def _refuse_unsupported(self) -> None:
        if self.file_format not in FILE_FORMATS:
            known = (*FILE_FORMATS, *added_names(Extension.FILE_FORMATS))
            if self.file_format not in known:
                message = (
                    f"option file.format={self.file_format} is not supported by this version; use {' or '.join(known)}"
                )
                raise InvalidInputError(message)
        if self.log_key_format is LogKeyFormat.AVRO and self.log_format is not LogFormat.DEBEZIUM_AVRO:
            message = f"option log.key.format=avro needs log.format=debezium-avro, not {self.log_format}; use json"
            raise InvalidInputError(message)


_BY_KEY = {each.metadata["key"]: each for each in fields(TableOptions) if "key" in each.metadata}
_ALIASES = {
    "deduplicate.ignore-delete": "ignore-delete",
    "first-row.ignore-delete": "ignore-delete",
    "partial-update.ignore-delete": "ignore-delete",
    "log.scan.timestamp-mills": "log.scan.timestamp-millis",
    "log.scan.startup.mode": "log.scan",
    "log.pk.changelog-mode": "log.changelog-mode",
    "log.pk.key-format": "log.key.format",
    "log.pkkey.key-format": "log.key.format",
    "universal_sort_run_num_compaction_trigger": "num-sorted-run.compaction-trigger",
    "universal_max_size_amplification_percent": "compaction.max-size-amplification-percent",
    "universal_size_ratio": "compaction.size-ratio",
    "level0_file_num_compaction_trigger": "compaction.level0-file-num-trigger",
    "max_bytes_for_level_base": "compaction.max-bytes-for-level-base",
    "max_bytes_for_level_multiplier": "compaction.max-bytes-for-level-multiplier",
    "log.properties.bootstrap.servers": "log.kafka.bootstrap.servers",
}
_OLDER_KAFKA_PREFIX = "log.properties."
_OLDER_VALUES = {
    ("log.scan", "initial"): "full",
    ("log.scan", "latest-offset"): "latest",
    (WRITE_MODE_OPTION, "auto"): "change-log",
}
_OF_PAIMON = ("bucket-key", "path", "type", "rowkind.field")
_SEPARATORS = re.compile(r"[-._ ]")
_SLIPS_MAX = 2


def canonical_key(key: str) -> str:
    """Return the current key of an option: without the session prefix, and with older names replaced.

    Idempotent: a key that one check has looked at is not another one for the next check, or where it is stored.
    """
    stripped = key
    while stripped.startswith(SESSION_PREFIX):
        stripped = stripped.removeprefix(SESSION_PREFIX)
    known = _ALIASES.get(stripped, stripped)
    if known.startswith(_OLDER_KAFKA_PREFIX):
        return KAFKA_PREFIX + known.removeprefix(_OLDER_KAFKA_PREFIX)
    return known


def older_spellings() -> dict[str, str]:
    """Return aliases of keys: names of FLIP-188, RocksDB's names listed there, and older names of Paimon."""
    return {**_ALIASES, f"{_OLDER_KAFKA_PREFIX}*": f"{KAFKA_PREFIX}*"}


def canonical_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options under their current keys."""
    return {canonical_key(key): value for key, value in (options or {}).items()}


def is_secret(key: str) -> bool:
    """Whether an option's name marks a secret, whose value must be neither stored nor shown."""
    spelled = _SEPARATORS.sub(".", key.lower())
    return any(word in spelled for word in _SECRET_WORDS)


def is_secret_option(key: str, value: object) -> bool:
    """Whether an option's value must be neither stored nor shown, judged by its name and its value."""
    return is_secret(key) or holds_secret(str(value))


def secret_pattern() -> str:
    """Return a regular expression, valid in Java as well, that matches names of options with secret values."""
    return "(?i)" + "|".join(word.replace(".", "[-._ ]?") for word in _SECRET_WORDS)


def names_a_secret(text: str) -> bool:
    """Whether a text, such as a statement, may contain a secret: it names a secret option or holds a secret."""
    return is_secret(text) or holds_secret(text)


def option_keys() -> list[str]:
    """Return the keys of all options of tables, sorted."""
    return sorted(_BY_KEY)


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """Replace secrets in the options by asterisks."""
    return {key: MASK if is_secret(key) else without_password(str(value)) for key, value in options.items()}


def _parsed(key: str, text: str, parse: Callable[[str], object]) -> object:
    try:
        return parse(text)
    except ValueError as error:
        shown = MASK if is_secret(key) else repr(without_password(text))
        message = f"option {key} is {shown}; {error}"
        raise InvalidInputError(message) from error


def _refuse_slip(given: str, key: str) -> None:
    if key.startswith((OWN_PREFIX, "x.", "user.")) or key in _OF_PAIMON:
        return
    meant = _meant(key)
    if meant is not None:
        message = f"unknown option {given!r}; did you mean {meant!r}?"
        raise InvalidInputError(message)


@cache
def _meant(key: str) -> str | None:
    """Return the option that ``key`` misspells (other separators, or at most two edits), or None.

    No option of Paimon is that close to one of ours, so options of its tables are never misinterpreted.
    """
    for known in _BY_KEY:
        if _SEPARATORS.sub("", known) == _SEPARATORS.sub("", key.lower()):
            return known
    near = nearest(key, _BY_KEY, like_enough=0.7)
    return near if near is not None and _slips(near, key) <= _SLIPS_MAX else None


def _slips(left: str, right: str) -> int:
    """Return Damerau's distance: letters inserted, deleted, substituted, or swapped with their neighbour."""
    before: list[int] = []
    last = list(range(len(right) + 1))
    for row, letter in enumerate(left, 1):
        line = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]
