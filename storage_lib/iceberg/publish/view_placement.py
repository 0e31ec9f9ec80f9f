"""Where a view's metadata lies: by Paimon's rule, so that readers of either find it.

table-location   <warehouse>/<database>.db/<table>/metadata
hadoop-catalog   <warehouse>/iceberg/<database>/<table>/metadata; <warehouse>/iceberg is an Iceberg Hadoop catalog
hive-catalog     the same; the metastore's entry names the newest metadata
rest-catalog     the same; the catalog itself writes its metadata into <warehouse>/<database>.db/<table>/metadata
"""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.io.file_io import FileIO
from storage_lib.schema.options.table_options import UUID_OPTION, IcebergStorage, TableOptions
from storage_lib.schema.table_schema import TableSchema

_DATABASE = ".db"
_OUTSIDE = (IcebergStorage.HADOOP_CATALOG, IcebergStorage.HIVE_CATALOG, IcebergStorage.REST_CATALOG)


def view_root(storage: IcebergStorage, location: str) -> str:
    """Return the directory of the view, above its ``metadata``; ``location`` is the table's.

    Raises ``InvalidInputError`` for a Hadoop catalog if the table is not in a database of a warehouse.
    """
    if storage is IcebergStorage.TABLE_LOCATION:
        return location
    database, _, table = location.rpartition("/")
    warehouse, _, name = database.rpartition("/")
    if not name.endswith(_DATABASE) or not warehouse:
        message = (
            f"metadata.iceberg.storage={storage} puts the view beside the databases of a warehouse, but {location} is "
            f"not below <warehouse>/<database>{_DATABASE}; use {IcebergStorage.TABLE_LOCATION}"
        )
        raise InvalidInputError(message)
    return f"{warehouse}/iceberg/{name.removesuffix(_DATABASE)}/{table}"


def drop_view(file_io: FileIO, schema: TableSchema, location: str) -> None:
    """Delete the view of a table that is dropped, or was moved from ``location``, if it lies outside of the table."""
    storage = TableOptions.parse(schema.options).iceberg_storage
    if UUID_OPTION in schema.options and storage in _OUTSIDE:
        file_io.delete_tree(view_root(IcebergStorage.HADOOP_CATALOG, location))
