"""Who commits: the same answer on every try of a task, so that a commit whose answer was lost is found, not repeated.

User = DAG, run, task and map index. Identifier = a token made at the first try and kept in the task's state store for
the tries that Airflow makes by itself. A task that someone clears commits anew, whether it had succeeded or failed.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Context

__all__ = ["CommitIdentity", "commit_identity", "task_instance_name"]

TOKEN_KEY = "commit_identifier"  # noqa: S105  a name, not a secret
# The UI and every JSON reader keep integers of this size exact; the last bits are left for the parts of one task.
TOKEN_BITS = 40
PARTS_MAX = 2**12


class CommitArguments(TypedDict):
    """The identity as keyword arguments of the library's calls."""

    commit_user: str
    commit_identifier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitIdentity:
    """A task instance's identity towards a table."""

    user: str
    token: int

    def arguments(self, part: int = 0) -> CommitArguments:
        """Return the identity of the task's ``part``-th commit; the order of parts must not change between tries."""
        return {"commit_user": self.user, "commit_identifier": self.token * PARTS_MAX + part}


@contextmanager
def commit_identity(context: Context) -> Iterator[CommitIdentity]:
    """Give the identity of this task instance.

    Its token is kept even when all is done: until Airflow knows that, the task may be tried again.
    """
    store = context.get("task_state_store")
    # Clearing a task raises its last possible try: that tells Airflow's own tries from a person's.
    last_try = context["ti"].max_tries
    kept: Any = None if store is None else store.get(TOKEN_KEY)
    if isinstance(kept, dict) and kept["last_try"] == last_try:
        token = kept["token"]
    else:
        token = secrets.randbits(TOKEN_BITS)
        if store is not None:
            store.set(TOKEN_KEY, {"token": token, "last_try": last_try})
    yield CommitIdentity(user=task_instance_name(context), token=token)


def task_instance_name(context: Context) -> str:
    """Return what names a task of a run, whichever try this is."""
    ti = context["ti"]
    return f"airflow/{ti.dag_id}/{ti.run_id}/{ti.task_id}/{ti.map_index}"
