"""Retry policies: Airflow's, or before Airflow 3.3, which has none, ours of the same names.

Put ``PolicedRetries`` before Airflow's class of an operator. Tasks of operators without it have their ``retries`` only
before Airflow 3.3.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["RETRY_DELAYS", "PolicedRetries", "RetryAction", "RetryDecision", "RetryPolicy"]

# Before Airflow 3.3 a task's arguments set the delay of every retry: here as the policy does it after an outage.
RETRY_DELAYS: dict[str, Any] = (
    {"retry_delay": timedelta(seconds=30)}
    if AirflowFeature.RETRY_POLICIES.is_here
    else {
        "retry_delay": timedelta(seconds=10),
        "max_retry_delay": timedelta(minutes=5),
        # The factor, or before Airflow 3.2 whether the delay doubles.
        "retry_exponential_backoff": 2.0 if AirflowFeature.NAMES_OF_THE_SDK.is_here else True,
    }
)
"""Arguments of tasks that delay retries where no policy does."""

if TYPE_CHECKING or AirflowFeature.RETRY_POLICIES.is_here:
    from airflow.sdk import RetryAction, RetryDecision, RetryPolicy

    class PolicedRetries:
        """Nothing: Airflow itself asks the policy."""
else:
    from dynamic_table.versions.own_retry_policy import PolicedRetries, RetryAction, RetryDecision, RetryPolicy
