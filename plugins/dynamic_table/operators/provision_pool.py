"""Creates an Airflow pool; an existing pool is never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from dynamic_table.arguments.rendered_argument import checked_count, checked_text, is_nothing
from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.connection.airflow_api import AIRFLOW_CONN_ID, AirflowApi
from dynamic_table.table_pools import DeclaredPool
from dynamic_table.versions.policed_retries import PolicedRetries
from dynamic_table.versions.sdk_exceptions import AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ProvisionPoolOperator"]


class ProvisionPoolOperator(TextTemplates, PolicedRetries, BaseOperator):
    """Creates a pool through Airflow's API; the task is skipped without ``slots``.

    :param pool_name: the pool's name. (templated)
    :param slots: how many tasks may run in it at a time; None: create no pool. (templated)
    :param pool_description: the pool's description.
    :param airflow_conn_id: connection for Airflow's API; see ``dynamic_table.connection.airflow_api``.
    """

    template_fields: Sequence[str] = ("pool_name", "slots")
    ui_color = "#e4ecd8"

    def __init__(
        self,
        *,
        pool_name: str,
        slots: int | str | None,
        pool_description: str = "",
        airflow_conn_id: str = AIRFLOW_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pool_name = pool_name
        self.slots = slots
        self.pool_description = pool_description
        self.airflow_conn_id = airflow_conn_id

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow's signature
        """Create the pool and return its name, its slots and the differences of an existing pool."""
        if is_nothing(self.slots):
            message = "no pool is configured"
            raise AirflowSkipException(message)
        name, slots = checked_text(self.pool_name, "pool_name"), checked_count(self.slots, "slots", least=1)
        pool = DeclaredPool(name, slots, self.pool_description, AirflowApi(self.airflow_conn_id))
        drift = pool.drift()
        for line in drift:
            # Operators may change the slots of a pool by hand, so a difference is not an error.
            self.log.warning("%s; nothing was changed", line)
        pool.create()
        return {"pool": name, "slots": slots, "drift": drift}
