"""Names of Airflow that the tests need and that differ between its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["DagBag", "DagSerialization", "TaskAwaitingInput", "TaskDeferred", "needs"]

if TYPE_CHECKING or AirflowFeature.NAMES_OF_THE_SDK.is_here:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk.exceptions import TaskDeferred
    from airflow.serialization.serialized_objects import DagSerialization
else:
    from airflow.exceptions import TaskDeferred
    from airflow.models.dagbag import DagBag
    from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization

if TYPE_CHECKING or AirflowFeature.TASK_STATE.is_here:
    from airflow.sdk.exceptions import TaskAwaitingInput
else:
    TaskAwaitingInput = TaskDeferred  # a task that waits for a user's answer is deferred


def needs(feature: AirflowFeature) -> pytest.MarkDecorator:
    """Return the mark of a test of what only newer versions of Airflow have."""
    return pytest.mark.skipif(not feature.is_here, reason=f"needs Airflow {feature.since}")
