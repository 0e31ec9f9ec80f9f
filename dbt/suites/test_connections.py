"""What the adapter asks of Spark."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.dynamic_tables import connections
from dbt.adapters.dynamic_tables.connections import DynamicTablesCredentials

BARS = "spark.ui.showConsoleProgress"


@pytest.mark.parametrize(("asked", "expected"), [({}, "false"), ({BARS: True}, "true")])
def test_progress_bars_are_not_written_between_the_lines_of_dbt_unless_a_profile_says_so(
    asked: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: list[dict[str, str]] = []
    monkeypatch.setattr("storage_lib.spark.session", lambda _name, conf: settings.append(conf))

    connections._spark(DynamicTablesCredentials(warehouse="w", schema="s", spark=asked))

    assert [each[BARS] for each in settings] == [expected]
