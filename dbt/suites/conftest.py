"""A warehouse in a temporary directory, for dbt's own suites."""

from __future__ import annotations

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="class")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    return {
        "type": "dynamic_tables",
        "threads": 2,
        "warehouse": str(warehouse),
        "spark": {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"},
    }
