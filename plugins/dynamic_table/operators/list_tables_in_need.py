"""Lists the tables that need maintenance, for mapped tasks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_count, checked_flag, checked_names
from dynamic_table.events.metrics import report_health
from dynamic_table.operators.table_operator import CatalogOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from storage_lib import Catalog

__all__ = ["ListTablesInNeedOperator"]


class ListTablesInNeedOperator(CatalogOperator):
    """Returns ``database.table`` of tables with buckets to compact, or with snapshots, tags or branches to expire.

    The largest tables come first, because their tasks take longest. Tables that can't be read are included, so that
    their own tasks fail with the reason.

    :param tables: only these tables; None or empty: all of the catalog. (templated)
    :param full: include everything that can be compacted, not only what is due. (templated)
    :param retain_last: number of newest snapshots that expiry keeps. (templated)
    """

    template_fields: Sequence[str] = ("tables", "full", "retain_last")
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        tables: Sequence[str] | str | None = None,
        full: bool | str = False,
        retain_last: int | str = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.full = full
        self.retain_last = retain_last

    def execute(self, context: Context) -> list[str]:  # noqa: ARG002  Airflow's signature
        """Return the names, largest table first."""
        chosen = checked_names(self.tables, "tables")
        full = checked_flag(self.full, "full")
        retain_last = checked_count(self.retain_last, "retain_last", least=1)
        catalog = self.hook.get_conn()
        names = sorted(set(chosen)) or self.hook.list_tables()
        sizes = {name: size for name in names if (size := self._size_in_need(catalog, name, full, retain_last)) >= 0}
        self.log.info("%d of %d tables need maintenance", len(sizes), len(names))
        return sorted(sizes, key=lambda name: (-sizes[name], name))

    def _size_in_need(self, catalog: Catalog, name: str, full: bool, retain_last: int) -> int:  # noqa: FBT001
        """Return the bytes of a table's files; -1 if it needs no maintenance, 0 if it can't be read."""
        from storage_lib.errors import StorageError

        try:
            table = catalog.load_table(name)
            health = table.inspect.health()
            report_health(name, health, int(time.time() * 1000))
            due = len(table.maintenance.plan_compaction(full=full))
            outlived = [*table.tags.expire(dry_run=True), *table.branches.expire(dry_run=True)]
        except StorageError as error:
            self.log.warning("%s can't be read: %s", name, error)
            return 0
        too_many = max(0, health.snapshot_count - retain_last)
        if not due and not too_many and not outlived:
            return -1
        self.log.info(
            "%s: %d bucket(s) to compact, %d snapshot(s) and %d tag(s) or branch(es) to expire",
            name, due, too_many, len(outlived),
        )  # fmt: skip
        return health.size_bytes
