"""Tables of Paimon's Java core that we can't read correctly: each is refused by name, never read in part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from storage_lib import InvalidInputError, WarehouseCatalog
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.paimon_core import PaimonCore
from tests.support.variants import object_of

IDENTIFIER = "db.t"
COLUMNS: Mapping[str, str] = {"id": "INT NOT NULL", "n": "INT"}
DAILY: Mapping[str, str] = {"id": "INT NOT NULL", "dt": "STRING NOT NULL", "n": "INT"}


@pytest.mark.parametrize(
    ("columns", "keys", "options", "said"),
    [
        (COLUMNS, [], {"bucket": "-1", "row-tracking.enabled": "true"}, "row-tracking.enabled=true"),
        (
            COLUMNS,
            [],
            {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"},
            "data-evolution.enabled=true",
        ),
        (COLUMNS, ["id"], {"bucket": "-2"}, "bucket=-2"),
        (
            COLUMNS,
            ["id"],
            {
                "bucket": "1",
                "pk-clustering-override": "true",
                "clustering.columns": "n",
                "deletion-vectors.enabled": "true",
            },
            "pk-clustering-override=true",
        ),
        (
            DAILY,
            ["dt", "id"],
            {
                "bucket": "1",
                "chain-table.enabled": "true",
                "sequence.field": "n",
                "partition.timestamp-pattern": "$dt",
                "partition.timestamp-formatter": "yyyyMMdd",
            },
            "chain-table.enabled=true",
        ),
    ],
    ids=["row tracking", "data evolution", "postponed buckets", "another sort order", "chain table"],
)
def test_what_java_keeps_in_its_own_way_is_refused_by_the_name_of_the_option(
    paimon_core: PaimonCore,
    tmp_path: Path,
    columns: Mapping[str, str],
    keys: list[str],
    options: dict[str, str],
    said: str,
) -> None:
    schema = new_table_schema(
        [(name, parse_type(spelled)) for name, spelled in columns.items()],
        primary_keys=keys,
        partition_keys=keys[:-1],
        options={"bucket": "1"},
        time_millis=0,
    )
    paimon_core.create(tmp_path, IDENTIFIER, replace(schema, options={"file.format": "parquet", **options}))

    with pytest.raises(InvalidInputError, match=f"table db.t has option {said}"):
        WarehouseCatalog(str(tmp_path)).load_table(IDENTIFIER)


def test_variants_that_java_has_shredded_are_refused_and_whole_ones_are_read(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    for inferred in ("false", "true"):
        schema = new_table_schema(
            [("id", parse_type("INT")), ("v", parse_type("VARIANT"))],
            primary_keys=["id"],
            options={"bucket": "1", "file.format": "parquet", "variant.inferShreddingSchema": inferred},
            time_millis=0,
        )
        paimon_core.create(tmp_path, f"db.shredded_{inferred}", schema)
        paimon_core.write(tmp_path, f"db.shredded_{inferred}", [(1, object_of("key", 7))], schema)
    catalog = WarehouseCatalog(str(tmp_path))

    assert catalog.load_table("db.shredded_false").to_arrow().to_pylist() == [{"id": 1, "v": object_of("key", 7)}]
    with pytest.raises(InvalidInputError, match=r"Column 'v' of .* shredded.*variant\.inferShreddingSchema=false"):
        catalog.load_table("db.shredded_true").to_arrow()
