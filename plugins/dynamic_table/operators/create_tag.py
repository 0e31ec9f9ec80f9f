"""Tags a snapshot of a table, which protects it from expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_count, checked_text, is_nothing
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.versions.kept_state import task_state_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["CreateTagOperator"]

SNAPSHOT_KEY = "tagged_snapshot"  # key in the task's state store


class CreateTagOperator(TableOperator):
    """Tags a snapshot: it stays readable under the tag's name after it has expired.

    An existing tag of this name is accepted if it tags ``snapshot_id`` or, without ``snapshot_id``, if an earlier try
    of this task created it.

    :param tag: the tag's name, such as ``{{ ds_nodash }}-closed``. (templated)
    :param snapshot_id: the snapshot; None: the newest. (templated)
    :param time_retained: how long to keep it, such as ``7 d``; None: until it is deleted. (templated)
    """

    template_fields: Sequence[str] = ("table", "tag", "snapshot_id", "time_retained")
    ui_color = "#e8e0f4"

    def __init__(
        self,
        *,
        tag: str,
        snapshot_id: int | str | None = None,
        time_retained: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.snapshot_id = snapshot_id
        self.time_retained = time_retained

    def execute(self, context: Context) -> dict[str, Any]:
        """Tag the snapshot and return its id."""
        from storage_lib.errors import AlreadyExistsError

        name = checked_text(self.tag, "tag")
        table = self.hook.load_table(self.table)
        wanted = self._snapshot_id(context, table)
        retained = None if is_nothing(self.time_retained) else checked_text(self.time_retained, "time_retained")
        try:
            snapshot_id = table.tags.create(name, wanted, time_retained=retained).snapshot.id
        except AlreadyExistsError:
            there = next((each for each in table.tags.list() if each.name == name), None)
            if there is None or there.snapshot.id != wanted:
                raise
            snapshot_id = there.snapshot.id
            self.log.info("Tag %s of snapshot %d exists already", name, snapshot_id)
        return {"table": self.table, "op": "create_tag", "tag": name, "version": snapshot_id}

    def _snapshot_id(self, context: Context, table: Any) -> int | None:
        """Return the same snapshot at every try, although the newest may change in between; None for an empty table."""
        if not is_nothing(self.snapshot_id):
            return checked_count(self.snapshot_id, "snapshot_id", least=1)
        store = task_state_store(context)
        # Clearing a task raises its max_tries; after a clear the newest snapshot is tagged.
        last_try = context["ti"].max_tries
        stored: Any = None if store is None else store.get(SNAPSHOT_KEY)
        if isinstance(stored, dict) and stored["last_try"] == last_try:
            return int(stored["snapshot_id"])
        snapshot = table.new_read().plan().snapshot
        if snapshot is None:
            return None
        if store is not None:
            store.set(SNAPSHOT_KEY, {"snapshot_id": snapshot.id, "last_try": last_try})
        return int(snapshot.id)
