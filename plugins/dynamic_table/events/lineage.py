"""Lineage of a task for OpenLineage: the tables that it read and wrote, as datasets. The provider is optional.

A table is the dataset ``<db>.<table>`` in the namespace of its warehouse, with its columns as the facet ``schema`` and
the task's snapshot as ``version``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamic_table.hook import DynamicTableHook

__all__ = ["refresh_lineage", "table_lineage"]

_log = logging.getLogger(__name__)


def table_lineage(
    hook: DynamicTableHook,
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    drops: Sequence[str] = (),
    version: int | None = None,
) -> Any:
    """Return the ``OperatorLineage``; omits invalid names, and the columns of tables that can't be opened."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=[_dataset(hook, name, None) for name in reads if _is_name(name)],
        outputs=[
            *(_dataset(hook, name, version) for name in writes if _is_name(name)),
            *(_dataset(hook, name, None, dropped=True) for name in drops if _is_name(name)),
        ],
    )


def refresh_lineage(hook: DynamicTableHook, table: str, version: int | None) -> Any:
    """Return the ``OperatorLineage`` of a refresh: the query's sources, and the table with its columns' lineage.

    A table that can't be opened, or whose query can't be traced, has no lineage of columns.
    """
    from openlineage.client.facet_v2 import column_lineage_dataset

    found = table_lineage(hook, reads=_sources_of(hook, table), writes=[table], version=version)
    columns = _columns_of(hook, table)
    if columns and found.outputs:
        [output] = found.outputs
        fields = {
            column: column_lineage_dataset.Fields(
                inputFields=[
                    column_lineage_dataset.InputField(namespace=output.namespace, name=source, field=field)
                    for source, field in sources
                ]
            )
            for column, sources in columns.items()
        }
        output.facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields)
    return found


def _sources_of(hook: DynamicTableHook, table: str) -> Sequence[str]:
    from storage_lib.errors import StorageError

    if not _is_name(table):
        return ()
    try:
        definition = hook.load_table(table).definition
    except StorageError:
        return ()
    return () if definition is None else definition.sources


def _columns_of(hook: DynamicTableHook, table: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the sources' columns by column of a materialized table; empty if they are unknown."""
    from storage_lib.errors import StorageError
    from storage_lib.materialized.algebra.column_lineage import column_lineage
    from storage_lib.materialized.sources.source_tables import source_table

    if not _is_name(table):
        return {}
    try:
        catalog = hook.get_conn()
        definition = catalog.load_table(table).definition
        if definition is None:
            return {}
        sources = [source_table(name, catalog.load_table(name)) for name in definition.sources]
        return column_lineage(definition.query, sources, database=definition.database)
    except StorageError as error:
        _log.info("The columns of %s have no lineage: %s", table, error)
        return {}


def _is_name(name: object) -> bool:
    """Return whether ``name`` is non-empty text; if a template rendered to nothing, the task itself fails."""
    return isinstance(name, str) and name != ""


def _dataset(hook: DynamicTableHook, name: str, version: int | None, *, dropped: bool = False) -> Any:
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import dataset_version_dataset, lifecycle_state_change_dataset, schema_dataset

    from storage_lib.errors import StorageError

    # Connections may spell the same warehouse differently; it has to be one namespace.
    warehouse = hook.warehouse.rstrip("/")
    namespace = warehouse if "://" in warehouse else f"file://{warehouse}"
    facets: dict[str, Any] = {}
    try:
        columns = hook.load_table(name).schema.fields
    except StorageError:
        columns = ()
    if columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name=each.name, type=str(each.type)) for each in columns]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    if version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(version))
    if dropped:
        change = lifecycle_state_change_dataset.LifecycleStateChange.DROP
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(change)
    return Dataset(namespace=namespace, name=name, facets=facets)
