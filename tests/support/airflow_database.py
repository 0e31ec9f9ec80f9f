"""PostgreSQL database of one Airflow, initially empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from local_postgres import LocalPostgres

__all__ = ["airflow_on_postgres"]


def airflow_on_postgres(postgres: LocalPostgres, name: str) -> dict[str, str]:
    """Create the database and return the environment of an Airflow that uses it."""
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    server = postgres.uri.rpartition("/")[0].replace("postgresql://", "postgresql+psycopg://")
    # One driver for both kinds of connections; Airflow would use asyncpg for the second.
    settings = ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC")
    return dict.fromkeys(settings, f"{server}/{name}")
