"""Dynamic tables: one table in two forms that always agree, a file store for history and a log for now.

catalog = open_catalog("warehouse")
table = catalog.create_table("shop.orders", pa.schema([...]), primary_key=["id"])
table.append(rows)
table.to_arrow(filter=col("id") == 3)
"""

from storage_lib.catalog.memory_catalog import MemoryCatalog
from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.catalog.warehouse_catalog import WarehouseCatalog, load_table_at, open_catalog
from storage_lib.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    InvalidInputError,
    LeaseLostError,
    LogOffsetsExpiredError,
    LogRepairError,
    NotFoundError,
    PermanentError,
    RetryableError,
    SnapshotExpiredError,
    StorageError,
    UnavailableError,
    UntrackedCommitError,
)
from storage_lib.schema.column_reference import col
from storage_lib.schema.row_kind import RowKind
from storage_lib.schema.schema_changes import (
    AddColumn,
    AlterType,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SetComment,
    SetNullable,
    SetOption,
)
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.hybrid_source import HybridSource
from storage_lib.table.ingest import IngestResult, ingest
from storage_lib.table.source_offsets import SourceRange
from storage_lib.table.stream_position import StreamPosition
from storage_lib.table.table_address import TableAddress

__all__ = [
    "AddColumn",
    "AlreadyExistsError",
    "AlterType",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CorruptFileError",
    "DropColumn",
    "DynamicTable",
    "HybridSource",
    "IngestResult",
    "InvalidInputError",
    "LeaseLostError",
    "LogOffsetsExpiredError",
    "LogRepairError",
    "MemoryCatalog",
    "MoveColumn",
    "NotFoundError",
    "PermanentError",
    "RemoveOption",
    "RenameColumn",
    "RetryableError",
    "RowKind",
    "SetComment",
    "SetNullable",
    "SetOption",
    "SnapshotExpiredError",
    "SourceRange",
    "StorageError",
    "StreamPosition",
    "TableAddress",
    "TableDescriptor",
    "UnavailableError",
    "UntrackedCommitError",
    "WarehouseCatalog",
    "col",
    "ingest",
    "load_table_at",
    "open_catalog",
]
