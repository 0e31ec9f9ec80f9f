"""Identity of a commit: the pair (commit user, commit identifier), which commits once."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex, cast

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.io.environment import Environment


def identity_of(
    table: str, environment: Environment, commit_user: str | None, commit_identifier: int | None
) -> tuple[str, int]:
    """Return the caller's identity, or a new one; ``InvalidInputError`` for an incomplete or invalid identity."""
    if commit_user is not None:
        checked_user(table, commit_user)
    if commit_identifier is not None and commit_user is None:
        message = f"table {table}: a commit_identifier means nothing without its commit_user; give both or neither"
        raise InvalidInputError(message)
    if commit_identifier is not None:
        commit_identifier = checked_identifier(table, commit_identifier)
    user = environment.new_name() if commit_user is None else commit_user
    return user, BATCH_COMMIT_IDENTIFIER if commit_identifier is None else commit_identifier


def write_identity_of(
    table: str, environment: Environment, commit_user: str | None, commit_identifier: int | None
) -> tuple[str, int]:
    """Return the identity as ``identity_of``, but refuse the identifier that means none and so matches no retry."""
    if commit_identifier == BATCH_COMMIT_IDENTIFIER:
        message = (
            f"table {table}: commit_identifier {commit_identifier} is the number of a commit without one, so a retry "
            "would commit again; give a smaller one"
        )
        raise InvalidInputError(message)
    return identity_of(table, environment, commit_user, commit_identifier)


def checked_user(table: str, commit_user: object) -> None:
    """Raise ``InvalidInputError`` for a value that is not text, or is empty."""
    if not isinstance(commit_user, str) or not commit_user:
        message = f"table {table}: commit_user is {commit_user!r}; give a text, such as the name of the job"
        raise InvalidInputError(message)


def checked_identifier(table: str, commit_identifier: object) -> int:
    """Return the identifier as an integer from 0 to 2^63 - 1; the maximum means none, as in Paimon."""
    try:
        value = index(cast("SupportsIndex", commit_identifier))
    except TypeError:
        value = -1
    if isinstance(commit_identifier, bool) or not 0 <= value <= BATCH_COMMIT_IDENTIFIER:
        message = (
            f"table {table}: commit_identifier is {commit_identifier!r}; give an integer of 0 to "
            f"{BATCH_COMMIT_IDENTIFIER - 1}, such as a batch's number"
        )
        raise InvalidInputError(message)
    return value
