"""An unknown option is refused with a suggestion, wherever a user sets it."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog, SetOption, TableDescriptor, open_catalog
from storage_lib.catalog.declaration.table_drift import table_drift
from storage_lib.schema.options.known_options import is_known_option, refuse_unknown_options
from storage_lib.schema.options.paimon_options import PASSED_THROUGH, PREFIXES_PASSED_THROUGH, REFUSED_FEATURES
from storage_lib.schema.options.table_options import TableOptions, option_keys
from tests.support.fake_environment import fake_environment

COLUMNS = pa.schema([("id", pa.int64())])
FREE = {"x.team": "flights", "user.ticket": "7", "table-storage.x.team": "flights"}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("foo", "unknown option 'foo'; `dynamic-table options`, storage_lib.describe_options() and SHOW OPTIONS"),
        ("buckets", "did you mean 'bucket'?"),
        ("write_only", "did you mean 'write-only'?"),
        ("compaction.maxsize-amplification", "did you mean 'compaction.max-size-amplification-percent'?"),
        ("table-storage.log.consistncy", "log.consistency'?"),
        ("changelog-mode", "did you mean 'log.changelog-mode'?"),
        ("file.rootpath", "did you mean 'file.root-path'?"),
        ("index-key", "rows are found by the primary key (or bucket-key) only"),
        ("write.precombine.field", "sequence.field"),
        ("value.format", "log.format"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(key: str, said: str) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table("shop.there", COLUMNS, options=FREE)
    wanted = re.escape(said)

    with pytest.raises(InvalidInputError, match=wanted):
        refuse_unknown_options((key,), "here")
    with pytest.raises(InvalidInputError, match=wanted):
        catalog.create_table("shop.orders", COLUMNS, options={key: "v"})
    with pytest.raises(InvalidInputError, match=wanted):
        table.alter(SetOption(key, "v"))
    with pytest.raises(InvalidInputError, match=wanted):
        MemoryCatalog({key: "v"})
    with pytest.raises(InvalidInputError, match=wanted):
        table_drift(table, TableDescriptor(schema=COLUMNS, options={key: "v"}))
    assert catalog.list_tables() == ["shop.there"]


def test_notes_of_ones_own_have_a_prefix_and_are_kept() -> None:
    table = MemoryCatalog(environment=fake_environment()).create_table("shop.orders", COLUMNS, options=FREE)

    assert (table.schema.options["x.team"], table.schema.options["user.ticket"]) == ("flights", "7")
    assert table.alter(SetOption("x.other", "1")).schema.options["x.other"] == "1"


def test_a_foreign_tables_options_are_kept_and_may_be_changed(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("shop.orders", COLUMNS, options={"write-mode": "append-only"})
    schema = Path(table.location) / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"options" : {', '"options" : {"of.another-engine": "1",', 1))
    if "of.another-engine" not in schema.read_text():
        schema.write_text(schema.read_text().replace('"options": {', '"options": {"of.another-engine": "1",', 1))

    there = open_catalog(str(tmp_path), {"log.system": "none"}).load_table("shop.orders")

    there.append(pa.table({"id": [1]}))
    assert there.schema.options["of.another-engine"] == "1"
    assert there.alter(SetOption("of.another-engine", "2")).schema.options["of.another-engine"] == "2"


def test_a_connection_may_say_what_is_its_own() -> None:
    MemoryCatalog({"s3.endpoint": "http://localhost:1", "lock.enabled": "false", "hive.x": "1", "user.note": "n"})

    with pytest.raises(InvalidInputError, match=r"did you mean 'lock\.enabled'"):
        MemoryCatalog({"lock.enable": "true"})


def test_what_is_passed_through_is_no_option_of_ours() -> None:
    keys = {key for keys in PASSED_THROUGH.values() for key in keys}

    assert {key for key in keys if not is_known_option(key)} == set()
    assert keys & set(option_keys()) == set()
    misspelled = {key for key in keys if TableOptions.parse({key: "1"}).others != {key: "1"}}
    assert misspelled == set(), "they are taken for misspelled options"


def test_each_of_paimons_options_is_in_one_list() -> None:
    lists = [*PASSED_THROUGH.values(), *REFUSED_FEATURES.values()]
    keys = [key for each in lists for key in each]

    assert len(keys) == len(set(keys))
    assert all(is_known_option(f"{prefix}anything") for prefix in PREFIXES_PASSED_THROUGH)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("universal_sort_run_num_compaction_trigger", "num-sorted-run.compaction-trigger"),
        ("universal_max_size_amplification_percent", "compaction.max-size-amplification-percent"),
        ("universal_size_ratio", "compaction.size-ratio"),
        ("level0_file_num_compaction_trigger", "compaction.level0-file-num-trigger"),
        ("max_bytes_for_level_base", "compaction.max-bytes-for-level-base"),
        ("max_bytes_for_level_multiplier", "compaction.max-bytes-for-level-multiplier"),
        ("log.pkkey.key-format", "log.key.format"),
        ("log.properties.bootstrap.servers", "log.kafka.bootstrap.servers"),
    ],
)
def test_the_documents_spellings_are_ours(given: str, meant: str) -> None:
    value = "json" if "format" in meant else "7"

    for prefix in ("", "table-storage."):
        assert TableOptions.parse({prefix + given: value}) == TableOptions.parse({meant: value})
    assert TableOptions.parse({given: value}) != TableOptions.parse({}) or value == "json"


def test_a_refused_feature_leaves_no_table() -> None:
    catalog = MemoryCatalog(environment=fake_environment())

    with pytest.raises(InvalidInputError, match=r"record-level\.expire-time"):
        catalog.create_table("shop.orders", COLUMNS, options={"record-level.expire-time": "1 d"})

    assert catalog.list_tables() == []
