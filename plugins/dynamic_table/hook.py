"""Hook that opens the catalog of an Airflow connection.

The connection's type is ``dynamic_table``; its extra holds ``warehouse`` (required), ``bootstrap_servers``,
``security_protocol``, ``sasl_mechanism``, ``catalog``, ``catalog_uri``, ``spark_master``, ``options`` (defaults for
CREATE and options of the Kafka client, the catalog and the schema registry), and ``secret_options`` for the secret
ones. Airflow shows the extra to everybody with permission to read connections, but hides the value of a field whose
name contains "secret"; a secret elsewhere in the extra is therefore an error. Login and password, if given, are
Kafka's. Secrets belong in the connection only, never in a DAG, a schema or an XCom.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from dynamic_table.connection.secret_mask import mask_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Connection

    from storage_lib import Catalog, DynamicTable

__all__ = ["DynamicTableHook"]

OPTIONS = "options"
SECRET_OPTIONS = "secret_options"  # noqa: S105  the name of the field
# Fields of the extra that may hold an address.
SHOWN_FIELDS = ("warehouse", "bootstrap_servers", "catalog_uri", "spark_master", "jobs_directory", "docs_directory")
OPTION_OF_FIELD = {
    "bootstrap_servers": "log.kafka.bootstrap.servers",
    "security_protocol": "log.kafka.security.protocol",
    "sasl_mechanism": "log.kafka.sasl.mechanism",
    "catalog": "metastore",
    "catalog_uri": "uri",
}


class DynamicTableHook(BaseHook):
    """Opens the catalog that a connection names.

    :param dynamic_table_conn_id: the connection's id.
    :param connection: the connection itself, if the caller has it already.
    """

    conn_name_attr = "dynamic_table_conn_id"
    default_conn_name = "dynamic_table_default"
    conn_type = "dynamic_table"
    hook_name = "Dynamic tables"

    def __init__(self, *, dynamic_table_conn_id: str = default_conn_name, connection: Connection | None = None) -> None:
        super().__init__()
        self.dynamic_table_conn_id = dynamic_table_conn_id
        self._connection = connection

    def get_conn(self) -> Catalog:
        """Open the catalog; raises InvalidInputError for an incomplete connection."""
        from storage_lib import open_catalog

        # The Kafka client logs a dozen lines per connection, which would bury the reason for a failure.
        logging.getLogger("kafka").setLevel(logging.WARNING)
        return open_catalog(self.warehouse, self.options)

    def load_table(self, name: str) -> DynamicTable:
        """Open one table; raises NotFoundError if it does not exist."""
        return self.get_conn().load_table(name)

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of all tables, or of one database's.

        Raises NotFoundError if the warehouse directory does not exist: with an unmounted volume, a task that maintains
        all tables would otherwise find none and succeed.
        """
        from storage_lib.errors import NotFoundError

        tables = list(self.get_conn().list_tables(database))
        here = self.warehouse.removeprefix("file://")
        # Object stores have no directories, so there a mistyped path looks like an empty warehouse.
        if not tables and "://" not in here and not Path(here).is_dir():
            message = (
                f"directory {here}, the warehouse of connection {self.dynamic_table_conn_id!r}, does not exist: check "
                "the path and whether the volume is mounted here. Creating the first table creates the directory."
            )
            raise NotFoundError(message)
        return tables

    @property
    def warehouse(self) -> str:
        """The folder or URL (``s3://bucket/path``) that holds all tables of the connection."""
        from storage_lib.errors import InvalidInputError

        warehouse = self.extra.get("warehouse")
        if not warehouse:
            message = (
                f"Connection {self.dynamic_table_conn_id!r} has no warehouse: "
                'add "warehouse": "/path/of/the/tables" or "s3://bucket/path" to its extra.'
            )
            raise InvalidInputError(message)
        return str(warehouse)

    @property
    def options(self) -> dict[str, str]:
        """The catalog's options. They may contain secrets, which Airflow's logs mask: do not log or return them.

        Raises InvalidInputError for a secret in a field that Airflow shows.
        """
        connection = self._connection or self.get_connection(self.dynamic_table_conn_id)
        secret = {key: str(value) for key, value in self._given_options(SECRET_OPTIONS).items()}
        options = {key: str(value) for key, value in self._given_options(OPTIONS).items()}
        given = {option: self.extra.get(field) for field, option in OPTION_OF_FIELD.items()} | {
            "log.kafka.sasl.plain.username": connection.login,
            "log.kafka.sasl.plain.password": connection.password,
        }
        mask_options(secret, all_of_them=True)
        shown = {key: str(value) for key, value in given.items() if value} | options
        mask_options(shown)
        self._refuse_shown_secrets(options)
        return shown | secret

    @property
    def secret_keys(self) -> frozenset[str]:
        """The connection's secret options."""
        return frozenset(self._given_options(SECRET_OPTIONS))

    def secrets(self) -> tuple[str, ...]:
        """Return the connection's secret texts: values of secret options, and secrets within other options."""
        from storage_lib.schema.options.secret_text import secrets_in
        from storage_lib.schema.options.table_options import is_secret

        keys = self.secret_keys
        return tuple(
            secret
            for key, value in self.options.items()
            for secret in ([value] if key in keys or is_secret(key) else []) + secrets_in(value)
        )

    @property
    def spark_master(self) -> str | None:
        """Spark master for tasks that set none; None: use Spark's own configuration."""
        return self.extra.get("spark_master") or None

    @property
    def extra(self) -> dict[str, Any]:
        """The connection's extra; raises InvalidInputError if it is JSON but not an object."""
        connection = self._connection or self.get_connection(self.dynamic_table_conn_id)
        extra: object = connection.extra_dejson
        if not isinstance(extra, dict):
            from storage_lib.errors import InvalidInputError

            message = (
                f"The extra of connection {self.dynamic_table_conn_id!r} is JSON, but not an object: write "
                '{"warehouse": "/path/of/the/tables"}.'
            )
            raise InvalidInputError(message)
        return extra

    def test_connection(self) -> tuple[bool, str]:
        """Test whether the warehouse can be listed and Kafka answers; returns the text for the form's test button."""
        from storage_lib.errors import StorageError

        try:
            tables = self.list_tables()
            greeting = f"The warehouse answers; it holds {len(tables)} table(s)."
            if "log.kafka.bootstrap.servers" not in self.options:
                return True, f"{greeting} No Kafka servers are named."
            return True, f"{greeting} Kafka answers with {self._count_brokers()} broker(s)."
        except (StorageError, OSError, ImportError) as refused:
            return False, str(refused)

    def _count_brokers(self) -> int:
        from storage_lib.distribution import importing_for
        from storage_lib.errors import InvalidInputError
        from storage_lib.io.environment import SystemClock

        with importing_for("the check of Kafka", InvalidInputError):
            from storage_lib.log_store.kafka.kafka_check import count_brokers

        return count_brokers(self.options, SystemClock())

    def _refuse_shown_secrets(self, options: Mapping[str, str]) -> None:
        """Raise InvalidInputError for a secret that Airflow's pages and REST API would show."""
        from storage_lib.errors import InvalidInputError
        from storage_lib.schema.options.table_options import is_secret_option

        fields = {key: str(self.extra.get(key) or "") for key in SHOWN_FIELDS}
        found = [f"{OPTIONS}: {key}" for key, value in options.items() if is_secret_option(key, value)]
        found += [key for key, value in fields.items() if is_secret_option("", value)]
        if found:
            message = (
                f"Connection {self.dynamic_table_conn_id!r} has a secret in its extra ({', '.join(found)}), where "
                f"Airflow shows it to every user who may read connections: move it to {SECRET_OPTIONS!r}, a JSON "
                'object like {"s3.secret-key": "..."}; an address with a password goes there as {"uri": "..."}.'
            )
            raise InvalidInputError(message)

    def _given_options(self, field: str) -> dict[str, Any]:
        """Return the options in one field of the extra, which Airflow's form stores as JSON text."""
        from storage_lib.errors import InvalidInputError

        given = self.extra.get(field) or {}
        try:
            options = json.loads(given) if isinstance(given, str) else given
        except ValueError:
            options = None
        if not isinstance(options, dict):
            message = (
                f"The {field} of connection {self.dynamic_table_conn_id!r} are {type(given).__name__}, not a JSON "
                'object; write {"log.kafka.security.protocol": "SSL"} or leave them empty.'
            )
            raise InvalidInputError(message)
        return options
