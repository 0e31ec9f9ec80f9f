"""A name is created once, and its creator knows it, whatever happens to the request and its response."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_hdfs import LocalHdfs
from local_s3 import LocalS3
from storage_lib.errors import CommitOutcomeUnknownError, UnavailableError
from storage_lib.io.file_io_factory import file_io_of
from storage_lib.io.remote.hdfs_file_io import HdfsFileIO
from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO
from tests.support.faulty_http import FaultyHttp, HttpFault
from tests.support.faulty_tcp import FaultyTcp

QUICK = {"s3.timeout": "400ms", "s3.connect-timeout": "400ms", "s3.max-retries": "0"}


@pytest.fixture
def network(s3: LocalS3) -> Iterator[FaultyHttp]:
    with FaultyHttp(s3.endpoint) as network:
        yield network


@pytest.fixture
def files(s3: LocalS3, network: FaultyHttp) -> ObjectStoreFileIO:
    """Open the store behind the faulty network."""
    return ObjectStoreFileIO({**s3.options, **QUICK, "s3.endpoint": network.endpoint})


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"s3://lake{tmp_path}"


@pytest.mark.parametrize("fault", HttpFault)
def test_a_create_that_the_network_mistreats_once_is_won_once(
    fault: HttpFault, network: FaultyHttp, files: ObjectStoreFileIO, root: str
) -> None:
    network.strike(fault, "PUT", "snapshot-1")

    assert files.create_if_absent(f"{root}/snapshot-1", b"ours")

    network.deliver()
    assert network.struck == 1
    assert files.read_bytes(f"{root}/snapshot-1") == b"ours"
    assert not files.create_if_absent(f"{root}/snapshot-1", b"theirs")


def test_a_request_that_arrives_after_its_repetition_changes_nothing(
    network: FaultyHttp, files: ObjectStoreFileIO, root: str
) -> None:
    network.strike(HttpFault.DELAY, "PUT", "snapshot-1")
    assert files.create_if_absent(f"{root}/snapshot-1", b"ours")

    network.deliver()

    assert network.late_statuses == [412]


@pytest.mark.parametrize("fault", HttpFault)
def test_a_create_that_is_lost_is_lost_whatever_the_network_does(
    fault: HttpFault, s3: LocalS3, network: FaultyHttp, files: ObjectStoreFileIO, root: str
) -> None:
    assert file_io_of(root, s3.options).create_if_absent(f"{root}/snapshot-1", b"theirs")
    network.strike(fault, "PUT", "snapshot-1")

    assert not files.create_if_absent(f"{root}/snapshot-1", b"theirs")

    network.deliver()
    assert network.struck == 1


def test_the_same_content_of_somebody_else_is_not_taken_for_ours(
    network: FaultyHttp, files: ObjectStoreFileIO, root: str
) -> None:
    network.strike(HttpFault.DROP_ANSWER, "PUT", "released-1", times=2)

    assert files.create_if_absent(f"{root}/released-1", b"")
    assert not files.create_if_absent(f"{root}/released-1", b"")


def test_an_outcome_that_nobody_can_look_up_is_unknown(
    network: FaultyHttp, files: ObjectStoreFileIO, root: str
) -> None:
    network.strike(HttpFault.DROP_ANSWER, "PUT", "snapshot-1", times=6)
    network.strike(HttpFault.REFUSE, "HEAD", "snapshot-1", times=6)

    with pytest.raises(CommitOutcomeUnknownError, match=r"can't tell whether .*snapshot-1"):
        files.create_if_absent(f"{root}/snapshot-1", b"ours")

    assert files.read_bytes(f"{root}/snapshot-1") == b"ours"


def test_without_a_server_nothing_was_done_and_nothing_is_unknown(s3: LocalS3, network: FaultyHttp, root: str) -> None:
    with FaultyHttp(s3.endpoint) as gone:
        nowhere = gone.endpoint

    with pytest.raises(UnavailableError, match="Nothing was done"):
        ObjectStoreFileIO({**s3.options, **QUICK, "s3.endpoint": nowhere}).create_if_absent(f"{root}/x", b"ours")


def test_reads_and_lists_outlive_a_broken_network(s3: LocalS3, network: FaultyHttp, root: str) -> None:
    files = ObjectStoreFileIO({**s3.options, "s3.endpoint": network.endpoint})
    files.write_bytes(f"{root}/a", b"x" * 1000)
    for method in ("GET", "HEAD"):
        network.strike(HttpFault.REFUSE, method, "")
        network.strike(HttpFault.DROP_ANSWER, method, "")

    assert files.read_bytes(f"{root}/a") == b"x" * 1000
    assert files.exists(f"{root}/a")
    assert [each.name for each in files.list_directory(root)] == ["a"]
    assert network.struck == 4


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("is_taken", [True, False])
def test_a_rename_in_hdfs_whose_answer_is_lost_is_settled(
    is_done: bool,  # noqa: FBT001
    is_taken: bool,  # noqa: FBT001
    hdfs: LocalHdfs,
    tmp_path: Path,
) -> None:
    sound = file_io_of(hdfs.url, {})
    root = f"{hdfs.url}{tmp_path}"

    def rival() -> None:
        if is_taken:
            assert sound.create_if_absent(f"{root}/snapshot-1", b"theirs")

    with FaultyTcp(hdfs.port) as network:
        network.cut(b"rename2", is_done=is_done, meanwhile=rival)

        won = HdfsFileIO().create_if_absent(f"hdfs://127.0.0.1:{network.port}{tmp_path}/snapshot-1", b"ours")

        assert network.struck == 1
    assert won is not is_taken
    assert sound.read_bytes(f"{root}/snapshot-1") == (b"theirs" if is_taken else b"ours")
    assert [each.name for each in sound.list_directory(root)] == ["snapshot-1"]
