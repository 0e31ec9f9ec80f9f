"""Tables as Airflow assets: every commit of an operator is an event with snapshot, operation and partitions.

The asset of ``db.table`` is ``dynamic-table://db/table``. A table's name is often known only when the task runs (a
form, a mapped task), so the operators emit events through the alias ``dynamic_tables``, which also trigger DAGs
scheduled on the table's asset. If the asset itself is among a task's outlets, it is used instead of the alias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from dynamic_table.events.metrics import report_commit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context
    from pydantic import JsonValue

__all__ = ["TABLE_EVENTS", "announce", "table_asset", "with_table_events"]

TABLE_EVENTS = AssetAlias(name="dynamic_tables")


def table_asset(table: str, aspect: str | None = None) -> Asset:
    """Return the asset of ``db.table``, or of one aspect of it (``dynamic-table://db/table/quality``)."""
    parts = [*table.split(".", 1), *([aspect] if aspect else [])]
    return Asset(name=".".join(parts), uri="dynamic-table://" + "/".join(parts))


def with_table_events(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operator's keyword arguments with the alias among its outlets.

    ``outlets`` is not a parameter of our operators: a mapped operator would copy its default, which Airflow can't use.
    """
    outlets = list(arguments.get("outlets") or ())
    return {**arguments, "outlets": outlets if TABLE_EVENTS in outlets else [*outlets, TABLE_EVENTS]}


def announce(
    context: Context,
    *,
    table: str,
    op: str,
    version: int | None,
    partitions: Sequence[Mapping[str, str | None]] = (),
    aspect: str | None = None,
    event: Mapping[str, JsonValue] | None = None,
    **details: Any,
) -> dict[str, Any]:
    """Emit the event of one commit (none if nothing was committed) and return the task's small JSON result.

    ``aspect`` is for events that do not change the table and must not trigger DAGs that wait for its changes.
    ``version`` is the new snapshot's id; no ``partitions`` means the whole table, or unknown partitions. ``event`` are
    further fields of the event and of the result, ``details`` further fields of the result only.
    """
    extra: dict[str, JsonValue] = {
        "version": version,
        "op": op,
        "partitions": [dict(partition) for partition in partitions],
        **(event or {}),
    }
    if version is not None:
        report_commit(table, op, version, details)
        asset, events = table_asset(table, aspect), context["outlet_events"]
        if any(isinstance(outlet, Asset) and outlet.uri == asset.uri for outlet in context["task"].outlets):
            events[asset].extra.update(extra)
        else:
            events[TABLE_EVENTS].add(asset, extra=extra)
    return {"table": table, **extra, **details}
