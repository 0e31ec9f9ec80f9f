"""A package adds a file format, a log system and a catalog by entry points, without a change to the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, open_catalog
from storage_lib.format.formats import _added_formats
from storage_lib.schema.options.option_changes import changed_options
from tests.support.parts_of_a_package import RememberingCatalog, install_into

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
NONE = {"log.system": "none"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the package on Python's path for the test."""
    install_into(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    _added_formats.cache_clear()
    yield tmp_path / "site"
    _added_formats.cache_clear()


@pytest.mark.parametrize("primary_key", [["id"], []], ids=["key", "counted"])
def test_data_files_in_a_format_that_a_package_adds(installed: Path, tmp_path: Path, primary_key: list[str]) -> None:
    catalog = open_catalog(tmp_path / "warehouse", NONE)
    table = catalog.create_table("db.t", ROWS.schema, primary_key=primary_key, options={"file.format": "feather"})
    table.append(ROWS)
    table.append(ROWS.slice(0, 1))
    table.compact()

    assert list(Path(table.location).rglob("bucket-0/*feather*"))
    assert not list(Path(table.location).rglob("*parquet*"))
    again = open_catalog(tmp_path / "warehouse", NONE).load_table("db.t").to_arrow(columns=["id"])
    assert sorted(again["id"].to_pylist()) == ([1, 2, 3] if primary_key else [1, 1, 2, 3])


def test_a_log_in_a_system_that_a_package_adds(installed: Path, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "warehouse", {"log.ramdisk.prefix": str(tmp_path)})
    table = catalog.create_table("db.t", ROWS.schema, primary_key=["id"], options={"log.system": "ramdisk"})
    source = table.stream()
    source.poll()
    table.append(ROWS)

    changes = source.poll()
    assert changes is not None
    assert sorted(changes["id"].to_pylist()) == [1, 2, 3]
    assert table.log is not None
    assert table.log.description()["log.kafka.topic"] == f"{tmp_path}/db.t"
    with pytest.raises(InvalidInputError, match=r"log\.system=ramdisk, of which this library"):
        table.rewrite(options={"bucket": "3"})
    catalog.drop_table("db.t")


def test_a_catalog_that_a_package_adds(installed: Path, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "warehouse", {"metastore": "remembering", **NONE})
    catalog.create_table("db.t", ROWS.schema, primary_key=["id"])

    catalog.load_table("db.t").append(ROWS)

    assert isinstance(catalog, RememberingCatalog)
    assert catalog.loaded == ["db.t"]


def test_what_nobody_adds_is_refused_with_what_there_is(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "warehouse", NONE)
    for options, message in (
        ({"file.format": "feather"}, "file.format=feather is not supported"),
        ({"log.system": "ramdisk"}, "log.system is 'ramdisk'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            catalog.create_table("db.t", ROWS.schema, options=options)
    with pytest.raises(InvalidInputError, match="'remembering'; it has to be one of"):
        open_catalog(tmp_path / "warehouse", {"metastore": "remembering"})
    assert catalog.list_tables() == []


def test_a_table_whose_package_was_uninstalled_says_what_is_missing(installed: Path, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "warehouse", NONE)
    catalog.create_table("db.t", ROWS.schema, primary_key=["id"], options={"file.format": "feather"}).append(ROWS)
    sys.path.remove(str(installed))
    _added_formats.cache_clear()

    with pytest.raises(InvalidInputError, match=r"file\.format=feather is not supported by this version"):
        catalog.load_table("db.t")


def test_an_entry_point_that_leads_nowhere_names_its_package(installed: Path, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "warehouse", NONE)
    with pytest.raises(InvalidInputError, match="no_such_name of package table-parts"):
        catalog.create_table("db.t", ROWS.schema, options={"log.system": "lost"})
    assert catalog.list_tables() == []


def test_two_packages_that_add_one_name_are_refused(installed: Path, tmp_path: Path) -> None:
    install_into(installed, "other-parts")
    info = installed / "other_parts-1.0.dist-info" / "entry_points.txt"
    info.write_text("[dynamic_tables.catalogs]\nremembering = pathlib:Path\n")

    with pytest.raises(InvalidInputError, match="several packages add 'remembering'"):
        open_catalog(tmp_path / "warehouse", {"metastore": "remembering"})


def test_the_log_system_of_a_table_that_is_there_stays(installed: Path) -> None:
    with pytest.raises(InvalidInputError, match="fixed when the table was created"):
        changed_options({"log.system": "none"}, "log.system", "ramdisk")
