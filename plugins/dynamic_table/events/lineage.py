"""Lineage of a task for OpenLineage: the tables that it read and wrote, as datasets. The provider is optional.

A table is the dataset ``<db>.<table>`` in the namespace of its warehouse, with its columns as the facet ``schema`` and
the task's snapshot as ``version``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamic_table.hook import DynamicTableHook

__all__ = ["table_lineage"]


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
