"""Tables with external data directories, in every kind of catalog and over several stores at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from local_hdfs import LocalHdfs
from local_s3 import LocalS3
from storage_lib import Catalog, InvalidInputError, SetOption, load_table_at, open_catalog
from storage_lib.io.file_io import FileIO
from storage_lib.io.file_io_factory import file_io_of
from storage_lib.schema.options.external_paths import PATHS_OPTION, STRATEGY_OPTION
from tests.support.catalog_homes import ALL, CatalogHome, catalog_home
from tests.support.every_file import data_files, every_file, needed_by_snapshots
from tests.support.orders_table import COLUMNS, content, orders, rows
from tests.support.orders_table import NAME as ORDERS

NO_LOG = {"log.system": "none"}


@pytest.fixture(params=ALL)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home(request.param, request, tmp_path)


def test_every_catalog_creates_renames_and_drops_the_directory_of_a_table(home: CatalogHome, tmp_path: Path) -> None:
    catalog = home.open()
    name, renamed = f"{home.database}.orders", f"{home.database}.renamed"
    options = {"file.root-path": f"{tmp_path}/outside"}
    keys = {"primary_key": ["dt", "id"], "partition_by": ["dt"], "options": options}
    table = catalog.create_table(name, COLUMNS, **keys)  # type: ignore[arg-type]
    table.append(rows("+I a 1 1"))
    place = f"{tmp_path}/outside/{home.database}.db/orders"
    assert table.schema.options[PATHS_OPTION] == f"file:{place}"
    assert data_files(table) == {path for path in every_file(home.files, place) if "/data-" in path} != set()

    catalog.rename_table(name, renamed)
    other = home.open()
    assert content(other.load_table(renamed)) == {"a 1 1"}
    with pytest.raises(InvalidInputError, match=r"belongs to the table at .*renamed"):
        other.create_table(name, COLUMNS, **keys)  # type: ignore[arg-type]
    assert not other.table_exists(name)
    other.drop_table(renamed)

    assert every_file(home.files, f"{tmp_path}/outside") == set()
    other.create_table(name, COLUMNS, **keys)  # type: ignore[arg-type]


def lives(catalog: Catalog, files: FileIO, directory: str) -> None:
    """Run a table's whole life cycle with its data in ``directory``, a URL or a path."""
    table = orders(catalog, **{**NO_LOG, "bucket": "1", "file.root-path": directory})
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 3 30"))
    table.append(rows("+U a 1 11", "-D a 2 20"))
    table.compact()
    table.tags.create("before", snapshot_id=1)
    table.overwrite(rows("+I b 4 40"), partition={"dt": "b"})
    assert table.address is not None
    assert content(load_table_at(table.address)) == {"a 1 11", "b 4 40"}

    table.maintenance.expire_snapshots(retain_last=1)
    lost = f"{directory}/shop.db/orders/dt=a/bucket-0/data-lost-0.parquet"
    files.write_bytes(lost, b"x")
    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == (lost,)
    assert content(table) == {"a 1 11", "b 4 40"}
    assert table.to_arrow(tag="before").num_rows == 3
    assert all(path.startswith(directory) for path in data_files(table))
    assert data_files(table) == needed_by_snapshots(table.context.file_store)
    with pytest.raises(InvalidInputError, match="belongs to the table at"):
        catalog.create_table(
            "shop.other",
            COLUMNS,
            options={**NO_LOG, PATHS_OPTION: table.schema.options[PATHS_OPTION], STRATEGY_OPTION: "round-robin"},
        )

    catalog.drop_table(ORDERS)
    assert every_file(files, directory) == set()
    assert not files.exists(f"{directory}/shop.db/orders")


@pytest.mark.s3
@pytest.mark.integration
def test_metadata_on_a_disk_and_data_in_s3(s3: LocalS3, tmp_path: Path) -> None:
    lives(
        open_catalog(f"{tmp_path}/warehouse", s3.options), file_io_of("s3://lake", s3.options), f"s3://lake{tmp_path}"
    )


@pytest.mark.s3
@pytest.mark.integration
def test_metadata_and_data_in_s3(s3: LocalS3, tmp_path: Path) -> None:
    files = file_io_of("s3://lake", s3.options)
    lives(open_catalog(f"s3://lake{tmp_path}/warehouse", s3.options), files, f"s3://lake{tmp_path}/outside")


@pytest.mark.s3
@pytest.mark.integration
def test_metadata_in_s3_and_data_on_a_disk(s3: LocalS3, tmp_path: Path) -> None:
    files = file_io_of("/", {})
    lives(open_catalog(f"s3://lake{tmp_path}/warehouse", s3.options), files, f"{tmp_path}/outside")


@pytest.mark.s3
@pytest.mark.hdfs
@pytest.mark.integration
def test_metadata_in_hdfs_and_data_in_s3(s3: LocalS3, hdfs: LocalHdfs, tmp_path: Path) -> None:
    files = file_io_of("s3://lake", s3.options)
    lives(open_catalog(f"{hdfs.url}{tmp_path}/warehouse", s3.options), files, f"s3://lake{tmp_path}/outside")


@pytest.mark.s3
@pytest.mark.integration
def test_files_in_two_stores_are_one_table(s3: LocalS3, tmp_path: Path) -> None:
    catalog = open_catalog(f"{tmp_path}/warehouse", s3.options)
    places = f"s3://lake{tmp_path}, file://{tmp_path}/outside"
    table = orders(catalog, **{**NO_LOG, PATHS_OPTION: places, STRATEGY_OPTION: "round-robin", "bucket": "4"})
    table.append(rows(*(f"+I a {key} 1" for key in range(40))))
    table.append(rows(*(f"+U a {key} 2" for key in range(40))))
    assert {path.startswith("s3:") for path in data_files(table)} == {True, False}

    table = table.alter(SetOption(STRATEGY_OPTION, "none"))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)

    assert content(table) == {f"a {key} 2" for key in range(40)}
    assert {path.startswith(table.location) for path in data_files(table)} == {True}
    catalog.drop_table(ORDERS)
    assert every_file(file_io_of("s3://lake", s3.options), f"s3://lake{tmp_path}") == set()


def test_a_table_that_names_a_store_nobody_reaches_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no storage answers to ftp://"):
        orders(open_catalog(str(tmp_path), NO_LOG), **{"file.root-path": "ftp://server/data"})
