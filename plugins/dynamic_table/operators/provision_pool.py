"""Makes a pool of Airflow's; one that is there is left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from dynamic_table.arguments.rendered_argument import checked_count, checked_text, is_nothing
from dynamic_table.connection.airflow_api import AIRFLOW_CONN_ID, AirflowApi
from dynamic_table.table_pools import DeclaredPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ProvisionPoolOperator"]


class ProvisionPoolOperator(BaseOperator):
    """Makes a pool through Airflow's own API; skipped where no slots are asked for.

    :param pool_name: the pool's name. (templated)
    :param slots: how many tasks may be in it at a time; None: no pool is wanted. (templated)
    :param pool_description: what it is for.
    :param airflow_conn_id: as who to ask; see ``dynamic_table.connection.airflow_api``.
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

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow hands it over
        """Make it and return its name, slots and how one that was there differs."""
        if is_nothing(self.slots):
            message = "no pool is asked for"
            raise AirflowSkipException(message)
        name, slots = checked_text(self.pool_name, "pool_name"), checked_count(self.slots, "slots", least=1)
        pool = DeclaredPool(name, slots, self.pool_description, AirflowApi(self.airflow_conn_id))
        drift = pool.drift()
        for line in drift:
            # Somebody has given it other slots by hand, which is what pools are for.
            self.log.warning("%s; nothing was changed", line)
        pool.create()
        return {"pool": name, "slots": slots, "drift": drift}
