"""Columns of the system tables, with Apache Paimon's names for tables that it has as well."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

_TIME = pa.timestamp("ms", tz="UTC")


def _columns(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


SYSTEM_TABLES: Mapping[str, pa.Schema] = {
    "snapshots": _columns(
        snapshot_id=pa.int64(),
        schema_id=pa.int64(),
        commit_user=pa.string(),
        commit_identifier=pa.int64(),
        commit_kind=pa.string(),
        commit_time=_TIME,
        base_manifest_list=pa.string(),
        delta_manifest_list=pa.string(),
        changelog_manifest_list=pa.string(),
        total_record_count=pa.int64(),
        delta_record_count=pa.int64(),
        changelog_record_count=pa.int64(),
        watermark=pa.int64(),
        next_row_id=pa.int64(),
        tracked=pa.bool_(),
        log_offsets=pa.string(),
    ),
    "schemas": _columns(
        schema_id=pa.int64(),
        fields=pa.string(),
        partition_keys=pa.string(),
        primary_keys=pa.string(),
        options=pa.string(),
        comment=pa.string(),
        update_time=_TIME,
    ),
    "options": _columns(key=pa.string(), value=pa.string()),
    "tags": _columns(
        tag_name=pa.string(),
        snapshot_id=pa.int64(),
        schema_id=pa.int64(),
        commit_time=_TIME,
        record_count=pa.int64(),
        create_time=_TIME,
        time_retained=pa.string(),
    ),
    "branches": _columns(branch_name=pa.string(), create_time=_TIME),
    "consumers": _columns(consumer_id=pa.string(), next_snapshot_id=pa.int64()),
    "manifests": _columns(
        file_name=pa.string(),
        file_size=pa.int64(),
        num_added_files=pa.int64(),
        num_deleted_files=pa.int64(),
        schema_id=pa.int64(),
        min_partition_stats=pa.string(),
        max_partition_stats=pa.string(),
        min_row_id=pa.int64(),
        max_row_id=pa.int64(),
    ),
    "files": _columns(
        partition=pa.string(),
        bucket=pa.int32(),
        file_path=pa.string(),
        file_format=pa.string(),
        schema_id=pa.int64(),
        level=pa.int32(),
        record_count=pa.int64(),
        file_size_in_bytes=pa.int64(),
        min_key=pa.string(),
        max_key=pa.string(),
        null_value_counts=pa.string(),
        min_value_stats=pa.string(),
        max_value_stats=pa.string(),
        min_sequence_number=pa.int64(),
        max_sequence_number=pa.int64(),
        creation_time=pa.timestamp("ms"),
        deleteRowCount=pa.int64(),
        file_source=pa.string(),
        first_row_id=pa.int64(),
        write_cols=pa.list_(pa.string()),
    ),
    "partitions": _columns(
        partition=pa.string(),
        record_count=pa.int64(),
        file_size_in_bytes=pa.int64(),
        file_count=pa.int64(),
        last_update_time=pa.timestamp("ms"),
    ),
    "buckets": _columns(
        partition=pa.string(),
        bucket=pa.int32(),
        record_count=pa.int64(),
        file_size_in_bytes=pa.int64(),
        file_count=pa.int64(),
        last_update_time=pa.timestamp("ms"),
    ),
    "rejected": _columns(
        id=pa.string(),
        time=_TIME,
        source=pa.string(),
        topic=pa.string(),
        partition=pa.int32(),
        offset=pa.int64(),
        timestamp=_TIME,
        key=pa.binary(),
        value=pa.binary(),
        column=pa.string(),
        reason=pa.string(),
    ),
    "statistics": _columns(
        snapshot_id=pa.int64(),
        schema_id=pa.int64(),
        mergedRecordCount=pa.int64(),
        mergedRecordSize=pa.int64(),
        colstat=pa.string(),
    ),
}
"""Columns by table name, without ``audit_log``, whose columns are ``rowkind`` and the table's own."""

AUDIT_LOG = "audit_log"
REJECTED_RECORDS = "rejected"
ROW_KIND = "rowkind"
