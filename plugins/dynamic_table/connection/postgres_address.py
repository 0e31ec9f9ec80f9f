"""Address of a PostgreSQL connection of Airflow, for ``storage_lib.verify``; it contains the password."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["postgres_address"]

POSTGRES = "postgres"
# Settings of libpq that name no program and no other server.
SETTINGS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "target_session_attrs", "channel_binding")


def postgres_address(connection: Connection) -> str:
    """Return ``postgresql://...``; raises InvalidInputError for a connection of another type or another setting."""
    from storage_lib.errors import InvalidInputError

    if connection.conn_type != POSTGRES:
        message = (
            f"Connection {connection.conn_id!r} is of type {connection.conn_type!r}; a comparison needs one of type "
            f"{POSTGRES!r}."
        )
        raise InvalidInputError(message)
    extra = {key: str(value) for key, value in (connection.extra_dejson or {}).items()}
    unknown = sorted(set(extra) - set(SETTINGS))
    if unknown:
        message = (
            f"Connection {connection.conn_id!r} has {', '.join(unknown)} in its extra; a comparison takes "
            f"{', '.join(SETTINGS)}."
        )
        raise InvalidInputError(message)
    user = quote(connection.login or "", safe="")
    password = f":{quote(connection.password, safe='')}" if connection.password else ""
    host = f"{connection.host or ''}{f':{connection.port}' if connection.port else ''}"
    settings = f"?{urlencode(extra)}" if extra else ""
    return (
        f"postgresql://{f'{user}{password}@' if user else ''}{host}/{quote(connection.schema or '', safe='')}{settings}"
    )
