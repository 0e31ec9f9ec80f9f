"""Options of a read or write: unknown ones are refused, never ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError
from storage_lib.spark.data_source.statement_options import StatementOptions, options_of
from storage_lib.spark.data_source.table_source import DynamicTableSource

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

ADDRESS = {"warehouse": "/w", "table": "db.t"}


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("commit-usr", "did you mean 'commit-user'"),
        ("overwrite_partition", "did you mean 'overwrite-partition'"),
        ("maxRowPerTrigger", "did you mean 'maxrowspertrigger'"),
        ("snapshot-id", "did you mean 'scan.snapshot-id'"),
        ("scan.snapshot_id", "did you mean 'scan.snapshot-id'"),
        (
            "versionAsOf",
            "has no option 'versionasof'; a statement's own are based-on-snapshot, branch, change-tracking, ",
        ),
        ("scan.no-such-thing", "has no option"),
        ("log.scan.offsets", "has no option"),
    ],
)
def test_an_option_that_nobody_knows_is_refused(key: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        StatementOptions.parse({**ADDRESS, key: "1"})


@pytest.mark.parametrize(
    "key", ["log.kafka.acks", "bucket", "s3.endpoint", "queryName", "__partition_columns", "table-storage.bucket"]
)
def test_options_of_tables_clients_storages_and_of_spark_itself_pass(key: str) -> None:
    assert StatementOptions.parse({**ADDRESS, key: "1"}).address.name == "db.t"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scan.normalize", "always"),
        ("scan.on-untracked", "shout"),
        ("maxRowsPerTrigger", "0"),
        ("maxRowsPerTrigger", "many"),
        ("log.scan", "sometimes"),
        ("change-tracking", "maybe"),
        ("overwrite-partition", "[]"),
        ("scan.snapshot-id", "newest"),
    ],
)
def test_a_value_that_can_not_be_is_refused_by_the_options_name(key: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=key.lower()):
        StatementOptions.parse({**ADDRESS, key: value})


def test_older_spellings_of_where_a_stream_starts_are_understood() -> None:
    assert StatementOptions.parse({**ADDRESS, "log.scan.startup.mode": "initial"}).scan.startup == "full"


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_table_is_found_by_its_path_as_spark_spells_paths(scheme: str) -> None:
    address = StatementOptions.parse({"path": f"{scheme}/w/db.db/t/"}).address

    assert (address.warehouse, address.name) == ("/w", "db.t")


def test_the_verbs_options_lead_back_to_the_table_whatever_else_its_catalog_was_told(
    make_table: Callable[..., DynamicTable],
) -> None:
    made = make_table()
    catalog = open_catalog(
        made.address.warehouse, {"tag.automatic-creation": "daily", "scan.snapshot-id": "7", "s3.endpoint": "x"}
    )
    table = catalog.load_table(made.name)

    said = StatementOptions.parse(options_of(table))

    assert (said.address.warehouse, said.address.name, said.table_uuid) == (catalog.warehouse, table.name, table.uuid)
    assert said.snapshot_id is None
    assert said.address.options == {"s3.endpoint": "x"}


def test_what_a_statement_can_not_obey_is_refused(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()

    def source(**options: str) -> DynamicTableSource:
        return DynamicTableSource({"path": table.location, **options})

    stream = source(**{"scan.streaming": "true", "scan.snapshot-id": "1"})
    with pytest.raises(InvalidInputError, match="for batch reads"):
        stream.streamReader(stream.schema())
    batch = source(**{"overwrite-partition": "{}"})
    with pytest.raises(InvalidInputError, match="this is an append"):
        batch.writer(batch.schema(), overwrite=False)
    assert table.context.leases.holder() is None
