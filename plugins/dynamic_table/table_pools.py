"""The pools that keep those who rewrite one table's files from getting into each other's way.

    dynamic_table.<db>.<table>    who rewrites this table: compactions, reprocessing, drops, publications
    dynamic_tables_maintenance    who looks after many tables in one run

A pool is made by provisioning, and used by whoever is there to use it: `pools_of` says which ones a task instance may
belong to, and the policy in ``pool_policy`` puts it into the first that exists. Of many tables that are looked after in
one run, a table with a pool of its own is compacted in that, beside what reprocesses it, and not in the common one.
Nothing depends on pools: a commit that loses a race is tried again without them, too, only more often.
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
# By name: whoever decides in the scheduler has the serialised task, not the class.
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
    """A pool as somebody wants it; one that is there is compared, never changed."""

    name: str
    slots: int
    description: str
    api: AirflowApi

    def drift(self) -> list[str]:
        """Say how the pool that is there differs, in a line; nothing for one that is missing."""
        slots = self.api.pool_slots(self.name)
        return [] if slots in (None, self.slots) else [f"pool {self.name} has {slots} slots, declared are {self.slots}"]

    def create(self) -> None:
        """Make it if it is missing."""
        if self.api.pool_slots(self.name) is None:
            self.api.create_pool(self.name, self.slots, self.description)


def table_pool(table: str) -> str:
    """Return the name of the pool of ``database.table``."""
    return f"dynamic_table.{table}"


def pools_of(
    task: Any, form: Mapping[str, Any], defaults: Mapping[str, Any], mapped_table: object = None
) -> tuple[str, ...]:
    """Return the pools for an instance of ``task`` (as the scheduler knows it), the one to prefer first.

    ``form`` is the run's ``conf``, ``defaults`` the DAG's parameters, ``mapped_table`` what the task is mapped to, as
    far as that can be told. A task that has a pool of its own keeps it.
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
