"""Five minutes of the soak (`make soak` is an hour of it, with Spark and a broker that dies, too)."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib.log_store.kafka_cluster import close_connections
from tests.soak.soak import soak

pytestmark = [pytest.mark.kafka, pytest.mark.integration, pytest.mark.timeout(1800)]


def test_files_topic_and_model_agree_whatever_is_killed(tmp_path: Path) -> None:
    try:
        said = soak(tmp_path, seconds=300, seed=11, spares_broker=True)
    finally:
        close_connections()

    assert "none differed" in said
