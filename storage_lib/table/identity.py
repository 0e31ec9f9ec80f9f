"""Whose commit it is: the pair (commit user, commit identifier) that commits once."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.io.environment import Environment


def identity_of(
    table: str, environment: Environment, commit_user: str | None, commit_identifier: int | None
) -> tuple[str, int]:
    """The identity that the caller gave, or a fresh one; ``InvalidInputError`` for half of one."""
    if commit_identifier is not None and commit_user is None:
        message = f"table {table}: a commit_identifier means nothing without its commit_user; give both or neither"
        raise InvalidInputError(message)
    user = environment.new_name() if commit_user is None else commit_user
    return user, BATCH_COMMIT_IDENTIFIER if commit_identifier is None else commit_identifier
