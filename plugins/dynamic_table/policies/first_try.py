"""What the first try of a task saw, for its retries, which see the work of the first try instead.

Kept in the task's state store. Clearing the task counts as a new first try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.versions.kept_state import task_state_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context
    from pydantic import JsonValue

__all__ = ["seen_by_first_try"]


def seen_by_first_try(context: Context, key: str, look: Callable[[], JsonValue]) -> Any:
    """Return the result of ``look`` in the first try; without a state store, each try looks itself."""
    store = task_state_store(context)
    # Clearing a task raises its max_tries, which distinguishes a clear from an automatic retry.
    last_try = context["ti"].max_tries
    stored = None if store is None else store.get(key)
    if isinstance(stored, dict) and stored["last_try"] == last_try:
        return stored["seen"]
    seen = look()
    if store is not None:
        store.set(key, {"seen": seen, "last_try": last_try})
    return seen
