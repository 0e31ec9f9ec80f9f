"""Airflow pools that limit concurrent rewrites of one table's files, to avoid commit conflicts.

    dynamic_table.<db>.<table>    rewrites of this table: compactions, reprocessing, drops, publications
    dynamic_tables_maintenance    maintenance of many tables in one run

Provisioning creates the pools. `pools_of` returns the pools that a task instance may belong to, and the policy in
``pool_policy`` puts it into the first one that exists. A maintenance run compacts a table that has its own pool in that
pool, which it shares with reprocessing, instead of the maintenance pool. Correctness does not depend on pools: without
them commits conflict and are retried more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamic_table.connection.airflow_api import AirflowApi

__all__ = ["MAINTENANCE_POOL", "DeclaredPool", "pools_of", "table_pool"]

MAINTENANCE_POOL = "dynamic_tables_maintenance"
DEFAULT_POOL = "default_pool"
PACKAGE = "dynamic_table."
# By class name: the scheduler has the serialised task, not the class.
REWRITERS = frozenset(
    {
        "CompactTableOperator",
        "DropPartitionsOperator",
        "PublishBranchOperator",
        "ReprocessPartitionsOperator",
        "RollbackTableOperator",
    }
)
CARERS = frozenset({"CompactTableOperator", "ExpireSnapshotsOperator", "RemoveOrphanFilesOperator"})
TABLE_TEMPLATES = ("{{ params.table }}", "{{params.table}}")


@dataclass(frozen=True, slots=True)
class DeclaredPool:
    """Declaration of a pool; an existing pool is compared with it, never changed."""

    name: str
    slots: int
    description: str
    api: AirflowApi

    def drift(self) -> list[str]:
        """Return a line that describes how the existing pool differs; empty if it is missing."""
        slots = self.api.pool_slots(self.name)
        return [] if slots in (None, self.slots) else [f"pool {self.name} has {slots} slots, {self.slots} are declared"]

    def create(self) -> None:
        """Create the pool if it is missing."""
        if self.api.pool_slots(self.name) is None:
            self.api.create_pool(self.name, self.slots, self.description)


def table_pool(table: str) -> str:
    """Return the name of the pool of ``database.table``."""
    return f"dynamic_table.{table}"


def pools_of(
    task: Any, form: Mapping[str, Any], defaults: Mapping[str, Any], mapped_table: object = None
) -> tuple[str, ...]:
    """Return the pools for an instance of ``task`` (the scheduler's serialised form), in order of preference.

    ``form`` is the run's ``conf``, ``defaults`` the DAG's parameters, ``mapped_table`` the table of a mapped instance
    if known. A task with an explicit pool keeps it.
    """
    kind = task.task_type
    if task.pool != DEFAULT_POOL or not _module(task).startswith(PACKAGE):
        return ()
    table = task.partial_kwargs.get("table", mapped_table) if task.is_mapped else getattr(task, "table", None)
    if table in TABLE_TEMPLATES:
        table = form.get("table", defaults.get("table"))
    is_rewritten = kind in REWRITERS and isinstance(table, str) and "{{" not in table
    own = (table_pool(str(table)),) if is_rewritten else ()
    return (*own, MAINTENANCE_POOL) if task.is_mapped and kind in CARERS else own


def _module(task: Any) -> str:
    return str(getattr(task, "_task_module", None) or type(task).__module__)
