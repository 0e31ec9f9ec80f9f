"""Users of the local Airflow and their passwords, generated once and kept in a file that only its owner can read.

    admin   role ADMIN, for users of the UI
    tasks   role OP, for tasks that call Airflow's API, by the connection ``airflow_api``

Airflow's SimpleAuthManager reads the file. It stores passwords as plain text, so the file and its folder are closed to
other users. Standard library only.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ADMIN", "ROLES", "TASKS", "closed_folder", "passwords"]

ADMIN, TASKS = "admin", "tasks"
ROLES = {ADMIN: "ADMIN", TASKS: "OP"}


def closed_folder(path: Path) -> None:
    """Create a folder with mode 0700: Airflow's settings in it contain the key that signs login tokens."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)


def passwords(path: Path) -> dict[str, str]:
    """Return the password of each user in ``path``, after generating missing ones."""
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    missing = [user for user in ROLES if user not in known]
    if missing:
        known |= {user: secrets.token_urlsafe(16) for user in missing}
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(known, file)
        new.replace(path)
    return known
