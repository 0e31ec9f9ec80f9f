"""Lists the due compactions for mapped tasks: one per table, or several for a large table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.compaction_shares import shares_of
from dynamic_table.arguments.rendered_argument import checked_flag, checked_names, checked_number, is_nothing
from dynamic_table.operators.table_operator import CatalogOperator
from dynamic_table.versions.sdk_conf import conf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ListCompactionsOperator"]

GIB = 1024**3
LEAST_GIB = 1 / GIB


class ListCompactionsOperator(CatalogOperator):
    """Returns arguments of ``CompactTableOperator``, for ``expand_kwargs``, the largest compaction first.

    If more than ``gib_per_task`` of a table is due, several tasks compact it in parallel, each some of its buckets; a
    failed task loses only its own work. A bucket is never divided. Tables that can't be read are included, so that
    their own tasks fail with the reason.

    :param tables: tables to examine, for example from ``ListTablesInNeedOperator``. (templated)
    :param full: include everything that can be compacted, not only what is due. (templated)
    :param gib_per_task: approximate input of one task in GiB; None: one task per table. (templated)
    """

    template_fields: Sequence[str] = ("tables", "full", "gib_per_task")
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        tables: Sequence[str] | Any,
        full: bool | str = False,
        gib_per_task: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.full = full
        self.gib_per_task = gib_per_task

    def execute(self, context: Context) -> list[dict[str, Any]]:  # noqa: ARG002  Airflow's signature
        """Return the arguments of each mapped task."""
        names = checked_names(self.tables, "tables")
        full = checked_flag(self.full, "full")
        bytes_per_task = float("inf")
        if not is_nothing(self.gib_per_task):
            bytes_per_task = GIB * checked_number(self.gib_per_task, "gib_per_task", least=LEAST_GIB)
        found = [one for name in names for one in self._compactions(name, full, bytes_per_task)]
        found.sort(key=lambda one: -one[0])
        # Airflow fails a task that returns more values for mapping.
        tasks_max = conf.getint("core", "max_map_length", fallback=1024)
        if len(found) > tasks_max:
            self.log.warning("%d compactions are due; the %d largest are done by this run", len(found), tasks_max)
        return [arguments for _, arguments in found[:tasks_max]]

    def _compactions(self, name: str, full: bool, bytes_per_task: float) -> list[tuple[int, dict[str, Any]]]:  # noqa: FBT001
        from storage_lib.errors import StorageError

        try:
            table = self.hook.load_table(name)
            tasks = table.maintenance.plan_compaction(full=full)
            shares = shares_of(table, tasks, bytes_per_task) if tasks else []
        except StorageError as error:
            self.log.warning("%s can't be read: %s", name, error)
            return [(0, {"table": name, "buckets": None})]
        self.log.info("%s: %d bucket(s) to compact, by %d task(s)", name, len(tasks), len(shares))
        if len(shares) == 1:  # the whole table: the task compacts what is due when it runs
            return [(shares[0][0], {"table": name, "buckets": None})]
        return [(size, {"table": name, "buckets": share}) for size, share in shares]
