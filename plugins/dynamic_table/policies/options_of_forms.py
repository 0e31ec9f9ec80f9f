"""Options of tables that a form may set, by name: each option is in one list, and one in no list is refused.

An option is allowed if no value of it makes a reader or a writer, here or in another engine, reach a server, open a
file outside the table, or load code. A new option is refused until it is listed; a test names it.
"""

from __future__ import annotations

__all__ = ["ALLOWED", "CHECKED", "REFUSED"]

CHECKED = frozenset(
    {"data-file.external-paths", "file.root-path", "log.kafka.bootstrap.servers", "log.schema-registry.url"}
)
"""Options that name servers and directories: allowed are the connection's, and those that an administrator lists."""

_OF_TABLES = """
    accumulators.rows-min aggregation.remove-record-on-delete bucket change-tracking changelog-producer
    changelog-producer.row-deduplicate changelog.num-retained.max changelog.num-retained.min
    changelog.time-retained commit.identity-time-retained compaction.keep-deletes
    compaction.level0-file-num-trigger compaction.max-bytes-for-level-base
    compaction.max-bytes-for-level-multiplier compaction.max-size-amplification-percent compaction.min.file-num
    compaction.size-ratio compaction.strategy data-file.external-paths.specific-fs
    data-file.external-paths.strategy data-file.external-paths.weights deletion-vectors.enabled
    deletion-vectors.merge-on-read dynamic-bucket.assigner-parallelism dynamic-bucket.initial-buckets
    dynamic-bucket.max-buckets dynamic-bucket.target-row-num file.compression file.compression.per.level
    file.compression.zstd-level file.format file.format.per.level force-lookup full-compaction.delta-commits
    ignore-delete lease.timeout lease.wait-timeout log.changelog-mode log.consistency log.format
    log.kafka.replication-factor log.kafka.topic log.key.format log.retention log.scan log.scan.on-corrupt
    log.scan.timestamp-millis log.system log.tier-interval log.transaction.timeout lookup.cache-max-memory-size
    manifest.full-compaction-threshold-size manifest.merge-min-count manifest.target-file-size merge-engine
    metadata.delta.enabled metadata.iceberg.storage metadata.stats-mode num-levels num-sorted-run.compaction-trigger
    num-sorted-run.stop-trigger partial-update.remove-record-on-delete
    partial-update.remove-record-on-sequence-group partition.default-name partition.legacy-name
    refresh.in-process-size-max rejected.retention row-kind.field scan.normalize scan.on-untracked
    scan.snapshot-id scan.tag-name scan.timestamp-millis sequence.field sequence.field.sort-order
    snapshot.num-retained.max snapshot.num-retained.min snapshot.time-retained source.split.target-size
    target-file-size write-buffer-size write-mode write-only write.produce-update-before
"""

_OF_OTHER_ENGINES = """
    add-column-before-partition alter-column-null-to-not-null.disabled async-file-write blob-compaction.enabled
    blob-write-null-on-fetch-failure blob-write-null-on-missing-file blob.copy-buffer-size
    blob.split-by-file-size blob.target-file-size bucket-append-ordered cache-page-size
    chain-table.chain-partition-keys chain-table.enabled chain-table.split.key-range-enabled
    chain-table.streaming.merge-snapshot changelog-file.compression changelog-file.format
    changelog-file.stats-mode changelog-producer.lookup-wait changelog-producer.row-deduplicate-ignore-fields
    changelog.precommit-compact.thread-num clustering.columns clustering.history-partition.idle-to-full-sort
    clustering.history-partition.limit clustering.incremental clustering.incremental.mode
    clustering.incremental.optimize-write clustering.strategy commit.discard-duplicate-files
    commit.force-compact commit.force-create-snapshot commit.max-retries commit.max-retry-wait
    commit.min-retry-wait commit.strict-mode.last-safe-snapshot commit.timeout
    compaction.bucket-distribution-strategy compaction.delete-ratio-threshold compaction.file-num-limit
    compaction.force-rewrite-all-files compaction.force-up-level-0 compaction.incremental-size-threshold
    compaction.offpeak-ratio compaction.offpeak.end.hour compaction.offpeak.start.hour
    compaction.optimization-interval compaction.skip-expired-partitions compaction.small-file-ratio
    compaction.total-size-threshold consumer.changelog-only consumer.expiration-time consumer.ignore-progress
    consumer.mode continuous.discovery-interval cross-partition-upsert.bootstrap-parallelism
    cross-partition-upsert.index-ttl data-evolution.compaction.rewrite-row-ids data-evolution.enabled
    data-evolution.merge-into.file-pruning data-evolution.merge-into.source-persist
    data-evolution.reassign.skip-contiguous-row-count data-evolution.row-id-conflict-rewrite.max-size
    data-evolution.row-sidecar.enabled data-evolution.row-sidecar.max-selected-rows
    data-evolution.row-sidecar.max-selection-ratio data-file.thin-mode delete-file.thread-num
    delete.force-produce-changelog deletion-vector.index-file.target-size deletion-vectors.bitmap64
    deletion-vectors.modifiable disable-explicit-type-casting dynamic-partition-overwrite
    end-input.check-partition-expire end-input.watermark file-index.in-manifest-threshold
    file-index.read.enabled file-operation.thread-num file-reader-async-threshold file.block-size
    file.suffix.include.compression format-table.file.compression format-table.repair.collect-statistics
    format-table.scan.list-parallelism format-table.statistics.parallelism full-text-index.search-mode
    global-index.build.max-parallelism global-index.build.max-shard global-index.column-update-action
    global-index.enabled global-index.row-count-per-shard global-index.search-mode global-index.thread-num
    ignore-update-before incremental-between incremental-between-scan-mode incremental-between-tag-to-snapshot
    incremental-between-timestamp incremental-to-auto-tag index-file-in-data-file-dir
    legacy-timestamp-mapping.enabled local-kv-db.block-size local-merge-buffer-size
    local-sort.max-num-file-handles lookup-compact lookup-compact.max-interval lookup-wait lookup.async
    lookup.async-thread-number lookup.bootstrap-parallelism lookup.cache lookup.cache-file-retention
    lookup.cache-max-disk-size lookup.cache-rows lookup.cache-spill-compression
    lookup.cache.bloom.filter.enabled lookup.cache.bloom.filter.fpp lookup.cache.high-priority-pool-ratio
    lookup.continuous.discovery-interval lookup.dynamic-partition.refresh-interval
    lookup.dynamic-partition.refresh.async lookup.hash-load-factor lookup.merge-buffer-size
    lookup.merge-records-threshold lookup.refresh.async lookup.refresh.async.pending-snapshot-count
    lookup.refresh.full-load-threshold lookup.refresh.time-periods-blacklist lookup.remote-file.enabled
    lookup.remote-file.level-threshold manifest-sort.enabled manifest-sort.max-rewrite-size
    manifest-sort.partition-field manifest.compression manifest.delete-file-drop-stats manifest.format
    manifest.merge-optimize.enabled metadata.stats-dense-store metadata.stats-keep-first-n-columns
    metadata.stats-mode.per.level orc.write.batch-size overwrite-upgrade page-size parquet.enable.dictionary
    partition partition.end-input-to-done partition.expiration-batch-size partition.expiration-check-interval
    partition.expiration-max-num partition.expiration-strategy partition.expiration-time
    partition.idle-time-to-done partition.idle-time-to-report-statistic partition.mark-done.recover-from-state
    partition.sink-strategy partition.time-interval partition.timestamp-format.strict
    partition.timestamp-formatter partition.timestamp-pattern pk-bitmap.index.columns pk-btree.index.columns
    pk-clustering-override pk-full-text.index.columns pk-multivalue.index.columns pk-vector.index.columns
    postpone.batch-write-fixed-bucket postpone.batch-write-fixed-bucket.max-parallelism
    postpone.batch-write-fixed-bucket.rescale-load-factor postpone.default-bucket-num postpone.merge-on-read
    postpone.target-row-num-per-bucket postpone.target-size-per-bucket precommit-compact primary-key
    primary-key.nullable read.allow.fullScan read.batch-size read.changelog read.shuffle-bucket-with-partition
    read.stream.maxBytesPerTrigger read.stream.maxFilesPerTrigger read.stream.maxRowsPerTrigger
    read.stream.maxTriggerDelayMs read.stream.minRowsPerTrigger record-level.expire-time record-level.time-field
    requiredSparkConfsCheck.enabled row-tracking.enabled row-tracking.partition-group-on-commit rowkind.field
    scalar-index.search-mode scan.bounded scan.bounded.watermark scan.bucket scan.creation-time-millis
    scan.dedicated-split-generation scan.fallback-branch.read-fail-fast scan.file-creation-time-millis
    scan.ignore-corrupt-files scan.ignore-lost-files scan.infer-parallelism scan.infer-parallelism.max
    scan.manifest.parallelism scan.max-snapshot.count scan.max-splits-per-task scan.mode scan.parallelism
    scan.partitions scan.plan-auto-tag-for-read.time-retained scan.plan-sort-partition scan.remove-normalize
    scan.split-enumerator.batch-size scan.split-enumerator.mode scan.timestamp scan.version scan.watermark
    scan.watermark.alignment.group scan.watermark.alignment.max-drift scan.watermark.alignment.update-interval
    scan.watermark.emit.strategy scan.watermark.idle-timeout sequence.snapshot-ordering
    sink.clustering.by-columns sink.clustering.sample-factor sink.clustering.sort-in-cluster
    sink.clustering.strategy sink.committer-cpu sink.committer-memory sink.committer-operator-chaining
    sink.coordinator-commit.enabled sink.cross-partition.managed-memory sink.key-only-deletes.enabled
    sink.managed.writer-buffer-memory sink.operator-uid.suffix sink.parallelism sink.process-time-zone
    sink.savepoint.auto-tag sink.use-managed-memory-allocator sink.watermark-time-zone
    sink.writer-coordinator.cache-expire-after-access sink.writer-coordinator.cache-memory
    sink.writer-coordinator.cache-soft-values sink.writer-coordinator.enabled sink.writer-coordinator.page-size
    sink.writer-coordinator.prefetch-manifests sink.writer-cpu sink.writer-memory sink.writer-refresh-detectors
    snapshot.clean-empty-directories snapshot.expire.clean-empty-directories snapshot.expire.execution-mode
    snapshot.expire.limit snapshot.ignore-empty-commit snapshot.watermark-idle-timeout
    sort-compaction.local-sample.magnification sort-compaction.range-strategy sort-engine sort-spill-buffer-size
    sort-spill-threshold source.checkpoint-align.enabled source.checkpoint-align.timeout
    source.operator-uid.suffix source.split.open-file-cost source.split.target-size-with-column-pruning
    spill-compression spill-compression.zstd-level streaming-compact streaming-read-append-overwrite
    streaming-read-mode streaming-read-overwrite streaming.read.snapshot.delay
    table-read.sequence-number.enabled tag.automatic-completion tag.automatic-creation tag.create-success-file
    tag.creation-delay tag.creation-period tag.creation-period-duration tag.default-time-retained
    tag.num-retained-max tag.period-formatter tag.time-expire-enabled tag.time-retained target-file-row-num
    unaware-bucket.compaction.parallelism unaware-bucket.no-shuffle variant.inferShreddingSchema
    variant.shredding.adaptive.maxInferBufferRow variant.shredding.adaptive.retentionRatio
    variant.shredding.inferenceMode variant.shredding.maxInferBufferRow variant.shredding.maxSchemaDepth
    variant.shredding.maxSchemaWidth variant.shredding.minFieldCardinalityRatio variant.shreddingSchema
    vector-field vector-index.search-mode vector-search.distribute.enabled vector-search.lateral-join.batch-size
    vector-search.lateral-join.parallelism vector.file.format vector.target-file-size write-buffer-for-append
    write-buffer-spill.max-disk-size write-buffer-spillable write-max-writers-to-spill write.batch-memory
    write.batch-size write.compaction-skip write.data-evolution.update-conflict-retry.max-attempts
    write.data-evolution.update-conflict-retry.wait-ms write.hive-style-dynamic-partition.enabled
    write.merge-schema write.merge-schema.explicit-cast write.merge-schema.type-widening
    write.sequence-number-init-mode write.use-v2-write zorder.var-length-contribution
"""

ALLOWED = frozenset({*_OF_TABLES.split(), *_OF_OTHER_ENGINES.split(), "bucket-key", "bucket-function.type", "type"})

# A refresh runs the query of a materialized table without the restrictions of a form's SQL; CREATE MATERIALIZED TABLE
# sets these options.
_OF_QUERIES = """
    materialized-table.definition-catalogs materialized-table.definition-columns
    materialized-table.definition-database
    materialized-table.definition-query materialized-table.definition-settings
    materialized-table.definition-sources materialized-table.interval-freshness
    materialized-table.interval-freshness.time-unit materialized-table.logical-refresh-mode
    materialized-table.refresh-mode materialized-table.refresh-status materialized-table.target-lag
"""

# Callbacks, catalogs and addresses; descriptors of blobs, which are addresses; and parts of the names of files and
# branches, which are parts of paths.
_REACHING = """
    auto-create blob-as-descriptor blob-descriptor-field blob-descriptor.source-table blob-field blob-view-field
    blob-view.resolve.enabled blob.stored-descriptor-fields changelog-file.prefix commit.callbacks
    commit.custom-listeners commit.user-prefix consumer-id data-file.path-directory data-file.prefix
    filesystem.job-level-settings.enabled format-table.commit-hive-sync-url format-table.implementation
    format-table.partition-path-only-value global-index.external-path lookup.blob-as-descriptor
    metadata.iceberg.compaction.max.file-num metadata.iceberg.compaction.min.file-num metadata.iceberg.database
    metadata.iceberg.delete-after-commit.enabled metadata.iceberg.format-version
    metadata.iceberg.glue.skip-archive metadata.iceberg.hadoop-conf-dir metadata.iceberg.hive-client-class
    metadata.iceberg.hive-conf-dir metadata.iceberg.hive-skip-update-stats metadata.iceberg.manifest-compression
    metadata.iceberg.manifest-legacy-version metadata.iceberg.previous-versions-max
    metadata.iceberg.storage-location metadata.iceberg.table metadata.iceberg.uri metastore.partitioned-table
    metastore.tag-to-partition metastore.tag-to-partition.preview partition.mark-done-action
    partition.mark-done-action.custom.class partition.mark-done-action.http.params
    partition.mark-done-action.http.url partition.mark-done-action.mode query-auth.enabled scan.fallback-branch
    scan.fallback-delta-branch scan.fallback-snapshot-branch scan.primary-branch tag.batch.customized-name
    tag.callbacks visibility-callback.check-interval visibility-callback.enabled visibility-callback.timeout
"""

REFUSED = frozenset({*_OF_QUERIES.split(), *_REACHING.split(), "path", "scan.normalize.state-directory"})
