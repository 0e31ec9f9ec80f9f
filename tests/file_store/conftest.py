"""Tables in memory, shared by the tests of the file store's verbs."""

from __future__ import annotations

import pytest

from tests.support.fake_environment import fake_environment
from tests.support.stored_table import StoredTable, orders_schema


@pytest.fixture
def table() -> StoredTable:
    """Create ``(dt STRING, id BIGINT, item STRING)``, key (dt, id), partitioned by dt, two buckets; in memory."""
    return StoredTable(orders_schema(), fake_environment())
