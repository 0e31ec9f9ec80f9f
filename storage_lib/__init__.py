"""Dynamic tables: each table is a file store for history and a log for new changes, which always agree.

catalog = open_catalog("warehouse")
table = catalog.create_table("shop.orders", pa.schema([...]), primary_key=["id"])
table.append(rows)
table.to_arrow(filter=col("id") == 3)

Names are imported on first use, so that printing a command's help does not import Arrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from storage_lib.distribution import import_failure

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.catalog.open_catalog import load_table_at, open_catalog
    from storage_lib.catalog.table_descriptor import TableDescriptor
    from storage_lib.catalog.warehouse.memory_catalog import MemoryCatalog
    from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
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
        SqlSyntaxError,
        StorageError,
        UnavailableError,
        UntrackedCommitError,
    )
    from storage_lib.schema.evolution.schema_changes import (
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
    from storage_lib.schema.filter.column_reference import col
    from storage_lib.schema.options.option_reference import OptionDescription, describe_options
    from storage_lib.schema.types.row_kind import RowKind
    from storage_lib.sync.sync_database import SyncResult, sync_database
    from storage_lib.sync.synced_table import TableSync
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.protocol.stream_position import StreamPosition
    from storage_lib.table.protocol.table_address import TableAddress
    from storage_lib.table.sources.ingest import IngestResult, ingest
    from storage_lib.table.sources.reingest import ReingestResult, reingest
    from storage_lib.table.stream.hybrid_source import HybridSource
    from storage_lib.verification.verification import Verification
    from storage_lib.verification.verify import verify
    from storage_lib.verification.verify_tables import verify_tables

_HOMES = {
    "AddColumn": "schema.evolution.schema_changes",
    "AlreadyExistsError": "errors",
    "AlterType": "schema.evolution.schema_changes",
    "Catalog": "catalog.catalog",
    "CommitConflictError": "errors",
    "CommitOutcomeUnknownError": "errors",
    "CorruptFileError": "errors",
    "DropColumn": "schema.evolution.schema_changes",
    "DynamicTable": "table.dynamic_table",
    "HybridSource": "table.stream.hybrid_source",
    "IngestResult": "table.sources.ingest",
    "InvalidInputError": "errors",
    "LeaseLostError": "errors",
    "LogOffsetsExpiredError": "errors",
    "LogRepairError": "errors",
    "MemoryCatalog": "catalog.warehouse.memory_catalog",
    "MoveColumn": "schema.evolution.schema_changes",
    "NotFoundError": "errors",
    "OptionDescription": "schema.options.option_reference",
    "PermanentError": "errors",
    "ReingestResult": "table.sources.reingest",
    "RemoveOption": "schema.evolution.schema_changes",
    "RenameColumn": "schema.evolution.schema_changes",
    "RetryableError": "errors",
    "RowKind": "schema.types.row_kind",
    "SetComment": "schema.evolution.schema_changes",
    "SetNullable": "schema.evolution.schema_changes",
    "SetOption": "schema.evolution.schema_changes",
    "SnapshotExpiredError": "errors",
    "SourceRange": "table.protocol.source_offsets",
    "SqlSyntaxError": "errors",
    "StorageError": "errors",
    "StreamPosition": "table.protocol.stream_position",
    "SyncResult": "sync.sync_database",
    "TableAddress": "table.protocol.table_address",
    "TableDescriptor": "catalog.table_descriptor",
    "TableSync": "sync.synced_table",
    "UnavailableError": "errors",
    "UntrackedCommitError": "errors",
    "Verification": "verification.verification",
    "WarehouseCatalog": "catalog.warehouse.warehouse_catalog",
    "col": "schema.filter.column_reference",
    "describe_options": "schema.options.option_reference",
    "ingest": "table.sources.ingest",
    "load_table_at": "catalog.open_catalog",
    "open_catalog": "catalog.open_catalog",
    "reingest": "table.sources.reingest",
    "sync_database": "sync.sync_database",
    "verify": "verification.verify",
    "verify_tables": "verification.verify_tables",
}

_MODULES = ("catalog", "errors", "progress", "spark")
"""Submodules available as attributes."""

__all__ = [
    "AddColumn",
    "AlreadyExistsError",
    "AlterType",
    "Catalog",
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
    "OptionDescription",
    "PermanentError",
    "ReingestResult",
    "RemoveOption",
    "RenameColumn",
    "RetryableError",
    "RowKind",
    "SetComment",
    "SetNullable",
    "SetOption",
    "SnapshotExpiredError",
    "SourceRange",
    "SqlSyntaxError",
    "StorageError",
    "StreamPosition",
    "SyncResult",
    "TableAddress",
    "TableDescriptor",
    "TableSync",
    "UnavailableError",
    "UntrackedCommitError",
    "Verification",
    "WarehouseCatalog",
    "col",
    "describe_options",
    "ingest",
    "load_table_at",
    "open_catalog",
    "reingest",
    "sync_database",
    "verify",
    "verify_tables",
]


def __getattr__(name: str) -> object:
    """Import the module of a public name on first use."""
    home = _HOMES.get(name)
    if home is None and name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        found = getattr(import_module(f"{__name__}.{home}"), name)
    except (ImportError, AttributeError) as error:
        raise import_failure(f"{__name__}.{name}", error) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
