"""Opens the storage of a warehouse's URL."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.io.file_io_factory import file_io_of, warehouse_root
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.remote.hdfs_file_io import HdfsFileIO
from storage_lib.io.remote.object_store_errors import translated
from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO


@pytest.mark.parametrize(
    ("warehouse", "kind"),
    [
        ("/data/tables", LocalFileIO),
        ("tables", LocalFileIO),
        ("file:///data/tables", LocalFileIO),
        ("s3://lake/tables", ObjectStoreFileIO),
        ("s3a://lake", ObjectStoreFileIO),
        ("gs://lake/tables", ObjectStoreFileIO),
        ("abfss://lake@account.dfs.core.windows.net/tables", ObjectStoreFileIO),
        ("hdfs://namenode:8020/tables", HdfsFileIO),
        ("hdfs:///tables", HdfsFileIO),
    ],
)
def test_the_scheme_says_which_storage(warehouse: str, kind: type) -> None:
    assert type(file_io_of(warehouse, {})) is kind


@pytest.mark.parametrize(
    ("spelled", "root"),
    [
        ("/data/tables/", "/data/tables"),
        ("file:/data/tables", "/data/tables"),
        ("file:///data/my%20tables/", "/data/my tables"),
        ("file://localhost/data", "/data"),
        ("s3://lake/tables/", "s3://lake/tables"),
    ],
)
def test_a_warehouse_has_one_root_however_it_is_spelled(spelled: str, root: str) -> None:
    assert warehouse_root(spelled) == root


@pytest.mark.parametrize("spelled", ["lake", "./lake/", "file:lake", "other/../lake"])
def test_a_relative_warehouse_is_that_of_the_process_that_named_it(
    spelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert warehouse_root(spelled) == str(tmp_path / "lake")


def test_the_parent_of_a_link_is_that_of_the_directory_it_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "inner")
    monkeypatch.chdir(tmp_path)

    assert warehouse_root("link/../lake") == str(tmp_path / "elsewhere" / "lake")
    assert warehouse_root("link/lake") == str(tmp_path / "link" / "lake")


def test_a_relative_warehouse_in_a_deleted_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(InvalidInputError, match="'lake' is relative"):
        warehouse_root("lake")


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_name_is_not_the_root_of_the_disk(empty: str) -> None:
    with pytest.raises(InvalidInputError, match="is empty"):
        warehouse_root(empty)


def test_a_scheme_that_nobody_answers_to_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInputError, match=r"no storage answers to ftp://.*s3://.*hdfs://"):
        file_io_of("ftp://host/tables", {})
    with pytest.raises(InvalidInputError, match="names no bucket"):
        file_io_of("s3:///tables", {})
    with pytest.raises(InvalidInputError, match="names the machine 'other'"):
        warehouse_root("file://other/tables")


def test_catalogs_of_one_connection_share_their_storage() -> None:
    options = {"s3.endpoint": "http://127.0.0.1:1", "bucket": "2"}

    assert file_io_of("s3://lake/a", options) is file_io_of("s3://lake/b", {**options, "bucket": "3"})
    assert file_io_of("s3://lake/a", options) is not file_io_of("s3://lake/a", {**options, "s3.region": "eu-west-1"})


def test_a_setting_that_the_store_does_not_know_is_named() -> None:
    files = file_io_of("s3://lake", {"s3.acess-key": "a", "s3.secret-key": "sesame"})

    with pytest.raises(InvalidInputError, match=r"s3\.acess_key.*'acess_key' is not valid.*s3\.<setting>") as refused:
        files.exists("s3://lake/a")
    assert "sesame" not in str(refused.value)
    with pytest.raises(InvalidInputError, match=r"s3\.max-retries is 'many'"):
        file_io_of("s3://lake", {"s3.max-retries": "many"}).exists("s3://lake/a")


def test_a_storage_does_not_show_its_secrets_but_takes_them_along() -> None:
    files = file_io_of("s3://lake", {"s3.access-key": "ann", "s3.secret-key": "sesame"})

    assert "sesame" not in repr(files)
    assert b"sesame" in pickle.dumps(files)


def test_an_error_does_not_show_the_signature_in_an_address() -> None:
    error = Exception(
        "Error performing GET https://account.blob/lake/x?sv=2024&sig=sesame in 1 ms - 503 Busy\nDebug: ..."
    )

    assert str(translated("read", "az://lake/x", error)) == (
        "can't read az://lake/x: Error performing GET https://account.blob/lake/x in 1 ms - 503 Busy. "
        "Try again when the store answers"
    )
