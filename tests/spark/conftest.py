"""Tables for the connector's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from storage_lib import open_catalog
from tests.support.shared_server import unique_name

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from storage_lib.table.dynamic_table import DynamicTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])


@pytest.fixture(scope="session")
def bootstrap_servers(kafka: LocalKafka) -> str:
    """Return the address of the session's broker."""
    return kafka.bootstrap_servers


@pytest.fixture
def make_table(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., DynamicTable]:
    """Return a function that creates table ``db.<name>`` of id, v, n; with a Kafka topic if ``log=True``."""

    def make(
        name: str = "t",
        *,
        columns: pa.Schema | dict[str, str] = COLUMNS,
        log: bool = False,
        primary_key: tuple[str, ...] = ("id",),
        partition_by: tuple[str, ...] = (),
        **options: Any,
    ) -> DynamicTable:
        catalog_options = {"log.kafka.bootstrap.servers": request.getfixturevalue("bootstrap_servers")} if log else {}
        spelled = {key.replace("_", "-").replace("--", "."): str(value) for key, value in options.items()}
        spelled["log.system"] = "kafka" if log else "none"
        if log:
            spelled["log.kafka.topic"] = f"{unique_name(tmp_path)}-{name}"
        return open_catalog(str(tmp_path / "warehouse"), catalog_options).create_table(
            f"db.{name}", columns, primary_key=primary_key, partition_by=partition_by, options=spelled
        )

    return make
