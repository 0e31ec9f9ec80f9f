"""A table as Hive clients see it: columns with Hive's types, partition keys, location and identifying properties.

It names the classes of Paimon's Hive connector, with which Hive can read the table and by which Paimon's own catalog
recognises it.
"""

from __future__ import annotations

from typing import Any

from pymetastore.hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

from storage_lib.catalog.table_name import TableName
from storage_lib.hive.hive_location import hive_location, place_of
from storage_lib.hive.hive_types import hive_column
from storage_lib.schema.options.table_options import is_secret_option
from storage_lib.schema.table_schema import TableSchema

SCHEMA_ID = "dynamic-table.schema-id"
_LOCATION = "paimon_location"
_TABLE_TYPE = "table_type"
_PAIMON = "PAIMON"
_INPUT = "org.apache.paimon.hive.mapred.PaimonInputFormat"
_OUTPUT = "org.apache.paimon.hive.mapred.PaimonOutputFormat"
_SERDE = "org.apache.paimon.hive.PaimonSerDe"
_STORAGE_HANDLER = "org.apache.paimon.hive.PaimonStorageHandler"
_VALUE_LENGTH_MAX = 4000


def hive_table(name: TableName, location: str, schema: TableSchema, *, owner: str, in_properties: bool) -> Any:
    """Build the metastore's table. ``in_properties`` stores the location as a property, for stores Hive can't reach."""
    made = Table(
        tableName=name.table,
        dbName=name.database,
        owner=owner,
        createTime=schema.time_millis // 1000,
        lastAccessTime=0,
        retention=0,
        # Not MANAGED: dropping the table in Hive must not delete its files.
        tableType="EXTERNAL_TABLE",
    )
    described = described_by(made, schema)
    set_location(described, location, in_properties=in_properties)
    return described


def described_by(table: Any, schema: TableSchema) -> Any:
    """Set the columns and properties of the metastore's table to those of the schema; return the table."""
    columns = {field.name: hive_column(field) for field in schema.fields}
    table.partitionKeys = [columns.pop(name) for name in schema.partition_keys]
    storage = table.sd or StorageDescriptor(numBuckets=-1, compressed=False, parameters={}, bucketCols=[], sortCols=[])
    storage.cols = list(columns.values())
    storage.inputFormat, storage.outputFormat = _INPUT, _OUTPUT
    storage.serdeInfo = SerDeInfo(serializationLib=_SERDE, parameters={})
    table.sd = storage
    place = {key: value for key, value in (table.parameters or {}).items() if key == _LOCATION}
    table.parameters = {**place, **_properties(schema)}
    return table


def set_location(table: Any, location: str, *, in_properties: bool) -> None:
    """Set the location of the metastore's table."""
    if in_properties:
        table.parameters[_LOCATION] = location
    else:
        table.sd.location = hive_location(location)


def is_ours(table: Any) -> bool:
    """Whether a metastore's table is in Paimon's format."""
    table_type = str((table.parameters or {}).get(_TABLE_TYPE, "")).upper()
    return table_type == _PAIMON or (table.sd is not None and table.sd.inputFormat == _INPUT)


def location_of(table: Any) -> str:
    """Return the directory of the table's files."""
    return place_of((table.parameters or {}).get(_LOCATION) or table.sd.location)


def schema_id_of(table: Any) -> int:
    """Return the id of the schema that last described the table; -1 if unknown."""
    schema_id = str((table.parameters or {}).get(SCHEMA_ID, ""))
    return int(schema_id) if schema_id.isdecimal() else -1


def _properties(schema: TableSchema) -> dict[str, str]:
    options = {
        key: value
        for key, value in schema.options.items()
        if not is_secret_option(key, value) and len(value) <= _VALUE_LENGTH_MAX
    }
    own = {
        "EXTERNAL": "TRUE",
        _TABLE_TYPE: _PAIMON,
        "storage_handler": _STORAGE_HANDLER,
        SCHEMA_ID: str(schema.id),
        **({"comment": schema.comment[:_VALUE_LENGTH_MAX]} if schema.comment else {}),
        **({"primary-key": ",".join(schema.primary_keys)} if schema.primary_keys else {}),
    }
    return {**options, **own}
