"""What OpenLineage is told of a task: the tables that it read and wrote, as datasets. The provider is not needed else.

A table is the dataset ``<db>.<table>`` in the namespace of its warehouse, with its columns as the facet ``schema`` and
the snapshot that the task made as ``version``.
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
    """Return the ``OperatorLineage``; a table that can't be opened has no columns, and what is no name is none."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=[_dataset(hook, name, None) for name in reads if _is_name(name)],
        outputs=[
            *(_dataset(hook, name, version) for name in writes if _is_name(name)),
            *(_dataset(hook, name, None, dropped=True) for name in drops if _is_name(name)),
        ],
    )


def _is_name(name: object) -> bool:
    """Not so where a template made nothing of it; the task fails by that, and lineage is told of its failure."""
    return isinstance(name, str) and name != ""


def _dataset(hook: DynamicTableHook, name: str, version: int | None, *, dropped: bool = False) -> Any:
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import dataset_version_dataset, lifecycle_state_change_dataset, schema_dataset

    from storage_lib.errors import StorageError

    # However the connection spells it, one warehouse is one namespace.
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
