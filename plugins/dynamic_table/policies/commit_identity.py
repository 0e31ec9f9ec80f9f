"""Commit identity of a task: the same on every try, so that a retry finds an earlier commit and does not repeat it.

The commit user names the DAG, run, task and map index. The commit identifier is a token that the first try creates; the
task's state store keeps it for automatic retries. A cleared task gets a new identity and commits again, even if it had
succeeded.

Before Airflow 3.3, which has no such store, the token is derived from what a retry shares with the first try: the
workers may have no directory in common.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from dynamic_table.versions.airflow_feature import AirflowFeature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Context

    from storage_lib import DynamicTable
    from storage_lib.file_store.snapshot.snapshot import Snapshot

__all__ = ["CommitIdentity", "commit_identity", "task_instance_name"]

TOKEN_KEY = "commit_identifier"  # noqa: S105  a name, not a secret
# The UI and JSON readers keep integers of this size exact; the last bits number the commits of one task.
TOKEN_BITS = 40
PARTS_MAX = 2**12


class CommitArguments(TypedDict):
    """A commit identity as keyword arguments of the library's calls."""

    commit_user: str
    commit_identifier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitIdentity:
    """The commit identity of a task instance; ``is_repeated`` if an earlier try may have committed under it."""

    user: str
    token: int
    is_repeated: bool = field(default=False, compare=False)

    def arguments(self, part: int = 0) -> CommitArguments:
        """Return the identity of the task's ``part``-th commit; the order of parts must not change between tries."""
        return {"commit_user": self.user, "commit_identifier": self.token * PARTS_MAX + part}

    def own_commit(self, table: DynamicTable, part: int = 0) -> Snapshot | None:
        """Return the snapshot of an earlier try's ``part``-th commit; None if there is none.

        An operator looks here before it decides what to do: its own commit may have left nothing to do.
        """
        if not self.is_repeated:
            return None
        found: Snapshot | None = table.new_write().committed(**self.arguments(part))
        return found


@contextmanager
def commit_identity(context: Context) -> Iterator[CommitIdentity]:
    """Yield the identity of this task instance.

    The token is kept after the last commit: Airflow may retry the task until it has recorded the success.
    """
    store = context.get("task_state_store")
    if store is None and not AirflowFeature.TASK_STATE.is_here:
        yield CommitIdentity(user=task_instance_name(context), token=_derived_token(context), is_repeated=True)
        return
    # Clearing a task raises its max_tries, which distinguishes a clear from an automatic retry.
    last_try = context["ti"].max_tries
    stored: Any = None if store is None else store.get(TOKEN_KEY)
    if isinstance(stored, dict) and stored["last_try"] == last_try:
        token, is_repeated = stored["token"], True
    else:
        token, is_repeated = secrets.randbits(TOKEN_BITS), False
        if store is not None:
            store.set(TOKEN_KEY, {"token": token, "last_try": last_try})
    yield CommitIdentity(user=task_instance_name(context), token=token, is_repeated=is_repeated)


def _derived_token(context: Context) -> int:
    """Return a token that differs for a task that was cleared, and for a run that was deleted and created again."""
    run, ti = context["dag_run"], context["ti"]
    told = f"{run.run_after.isoformat()}/{run.start_date and run.start_date.isoformat()}/{ti.max_tries}"
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[: TOKEN_BITS // 8])


def task_instance_name(context: Context) -> str:
    """Return the name of a run's task, the same for all tries."""
    ti = context["ti"]
    return f"airflow/{ti.dag_id}/{ti.run_id}/{ti.task_id}/{ti.map_index}"
