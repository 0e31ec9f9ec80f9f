"""One suite for every storage: the guarantees on which the library relies."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.storages import OF_SERVERS, WITH_DIRECTORIES, WITHOUT_DIRECTORIES, Storage, open_storage


def names(storage: Storage, directory: str = "") -> dict[str, bool]:
    entries = storage.files.list_directory(f"{storage.root}{directory}")
    return {entry.name: entry.is_directory for entry in entries}


def write_in_parts(storage: Storage, path: str) -> None:
    with storage.files.open_output(path) as output:
        for _ in range(9):
            output.write(b"x" * 1024 * 1024)


def test_what_was_written_is_read_back(storage: Storage) -> None:
    path = f"{storage.root}/manifest/manifest-1"

    storage.files.write_bytes(path, b"\x00content\xff")

    assert storage.files.read_bytes(path) == b"\x00content\xff"
    assert storage.files.exists(path)


def test_parents_are_made_as_needed_and_listed(storage: Storage) -> None:
    storage.files.write_bytes(f"{storage.root}/a/b/c/file", b"x")
    storage.files.create_if_absent(f"{storage.root}/a/created", b"x")
    storage.files.replace(f"{storage.root}/hint/LATEST", b"1")

    assert names(storage) == {"a": True, "hint": True}
    assert names(storage, "/a") == {"b": True, "created": False}
    assert names(storage, "/a/b") == {"c": True}
    assert storage.files.exists(f"{storage.root}/a/b")


def test_a_missing_file_is_told_by_name(storage: Storage) -> None:
    path = f"{storage.root}/snapshot/snapshot-7"

    assert not storage.files.exists(path)
    with pytest.raises(NotFoundError, match="snapshot-7"):
        storage.files.read_bytes(path)
    with pytest.raises(NotFoundError, match="snapshot-7"):
        storage.files.open_input(path)


def test_a_file_below_a_file_does_not_exist(storage: Storage) -> None:
    storage.files.write_bytes(f"{storage.root}/file", b"x")

    assert not storage.files.exists(f"{storage.root}/file/below")
    storage.files.delete(f"{storage.root}/file/below")
    assert storage.files.read_bytes(f"{storage.root}/file") == b"x"


def test_create_if_absent_keeps_the_first(storage: Storage) -> None:
    path = f"{storage.root}/snapshot/snapshot-1"

    assert storage.files.create_if_absent(path, b"first")
    assert not storage.files.create_if_absent(path, b"second")

    assert storage.files.read_bytes(path) == b"first"
    assert names(storage, "/snapshot") == {"snapshot-1": False}


@pytest.mark.parametrize("storage", WITH_DIRECTORIES, indirect=True)
def test_create_if_absent_loses_against_a_directory(storage: Storage) -> None:
    storage.files.make_directory(f"{storage.root}/taken")

    assert not storage.files.create_if_absent(f"{storage.root}/taken", b"x")


def test_an_empty_file_is_a_file(storage: Storage) -> None:
    path = f"{storage.root}/lease/released-1"

    assert storage.files.create_if_absent(path, b"")
    assert not storage.files.create_if_absent(path, b"")

    assert storage.files.read_bytes(path) == b""
    with storage.files.open_input(path) as opened:
        assert opened.read() == b""


def test_of_many_threads_that_create_one_name_one_wins_and_nobody_sees_half(storage: Storage) -> None:
    path = f"{storage.root}/snapshot/snapshot-1"
    contents = [bytes([65 + number]) * 100_000 for number in range(16)]
    barrier = threading.Barrier(len(contents))

    def race(content: bytes) -> bool:
        barrier.wait()
        won = storage.files.create_if_absent(path, content)
        assert storage.files.read_bytes(path) in contents
        return won

    with ThreadPoolExecutor(len(contents)) as threads:
        won = list(threads.map(race, contents))

    assert sum(won) == 1
    assert storage.files.read_bytes(path) == contents[won.index(True)]
    assert names(storage, "/snapshot") == {"snapshot-1": False}


def test_write_bytes_refuses_to_change_a_file(storage: Storage) -> None:
    path = f"{storage.root}/manifest-1"
    storage.files.write_bytes(path, b"old")

    with pytest.raises(AlreadyExistsError, match="manifest-1"):
        storage.files.write_bytes(path, b"new")

    assert storage.files.read_bytes(path) == b"old"


def test_replace_takes_the_place_of_whatever_is_there(storage: Storage) -> None:
    path = f"{storage.root}/LATEST"

    storage.files.replace(path, b"1")
    storage.files.replace(path, b"22")

    assert storage.files.read_bytes(path) == b"22"
    assert names(storage) == {"LATEST": False}


def test_readers_of_a_replaced_file_see_one_content_or_the_other(storage: Storage) -> None:
    path = f"{storage.root}/LATEST"
    contents = [b"1" * 50_000, b"2" * 60_000]
    storage.files.replace(path, contents[0])
    done = threading.Event()
    turns = 20 if storage.root.startswith("hdfs:") else 200  # HDFS may take half a second to close a file

    def replace_on() -> None:
        for turn in range(turns):
            storage.files.replace(path, contents[turn % 2])
        done.set()

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(replace_on)
        while not done.is_set() and not writing.done():
            assert storage.files.read_bytes(path) in contents
        writing.result()


def test_listing_tells_sizes_and_times_and_a_missing_directory_is_empty(storage: Storage) -> None:
    storage.files.write_bytes(f"{storage.root}/file", b"12345")

    (entry,) = storage.files.list_directory(storage.root)

    assert (entry.name, entry.size_bytes, entry.is_directory) == ("file", 5, False)
    assert entry.modified_ms > 1_600_000_000_000
    assert storage.files.list_directory(f"{storage.root}/nowhere") == []
    assert storage.files.list_directory(f"{storage.root}/") == [entry]


def test_deleting_twice_is_fine(storage: Storage) -> None:
    storage.files.write_bytes(f"{storage.root}/a/file", b"x")

    for _ in range(2):
        storage.files.delete(f"{storage.root}/a/file")
        assert not storage.files.exists(f"{storage.root}/a/file")
    for _ in range(2):
        storage.files.delete_tree(storage.root)
        assert not storage.files.exists(storage.root)


def test_delete_tree_takes_everything_inside_and_nothing_beside(storage: Storage) -> None:
    for name in ("dt=1/bucket-0/a", "dt=1/b", "dt=10/bucket-0/a"):
        storage.files.write_bytes(f"{storage.root}/{name}", b"x")

    storage.files.delete_tree(f"{storage.root}/dt=1")

    assert names(storage) == {"dt=10": True}
    assert storage.files.exists(f"{storage.root}/dt=10/bucket-0/a")


@pytest.mark.parametrize("storage", WITH_DIRECTORIES, indirect=True)
def test_making_a_directory_twice_is_fine(storage: Storage) -> None:
    for _ in range(2):
        storage.files.make_directory(f"{storage.root}/a/b")

    assert names(storage) == {"a": True}
    assert storage.files.list_directory(f"{storage.root}/a/b") == []


def test_a_streamed_file_is_there_after_close_and_sync(storage: Storage) -> None:
    paths = [f"{storage.root}/dt={day}/bucket-0/data-{day}.parquet" for day in range(3)]

    for path in paths:
        with storage.files.open_output(path) as output:
            output.write(b"PAR1")
            output.write(path.encode())
    storage.files.sync(paths)

    for path in paths:
        assert storage.files.read_bytes(path) == b"PAR1" + path.encode()


def test_open_input_reads_anywhere(storage: Storage) -> None:
    path = f"{storage.root}/data-1.parquet"
    storage.files.write_bytes(path, bytes(range(100)))

    with storage.files.open_input(path) as opened:
        assert opened.size() == 100
        opened.seek(90)
        assert opened.read(5) == bytes(range(90, 95))
        opened.seek(10)
        assert opened.read(1) == b"\x0a"


def test_an_open_file_can_be_read_on_after_it_was_deleted(storage: Storage) -> None:
    path = f"{storage.root}/data-1.parquet"
    storage.files.write_bytes(path, b"x" * 10_000)

    with storage.files.open_input(path) as opened:
        storage.files.delete(path)
        assert opened.read() == b"x" * 10_000


def test_a_large_file_is_streamed_and_read_from_any_place(storage: Storage) -> None:
    """Larger than one request, one block of parts, and the read-ahead."""
    path = f"{storage.root}/bucket-0/data-1.parquet"
    block = bytes(range(256)) * 4096
    places = (0, 1, 511, len(block) - 3, 8 * len(block) - 1, 9 * len(block), 20 * len(block) - 7)

    with storage.files.open_output(path) as output:
        for _ in range(20):
            output.write(block)
    storage.files.sync([path])

    assert [entry.size_bytes for entry in storage.files.list_directory(f"{storage.root}/bucket-0")] == [20 * len(block)]
    with storage.files.open_input(path) as opened:
        assert opened.size() == 20 * len(block)
        for place in (*places, *reversed(places)):
            opened.seek(place)
            assert opened.read(7) == (block * 2)[place % len(block) :][:7]
        opened.seek(0)
        whole = opened.read()
        assert len(whole) == 20 * len(block)
        assert whole == block * 20


def test_a_large_file_does_not_replace_another(storage: Storage) -> None:
    path = f"{storage.root}/data-1.parquet"
    storage.files.write_bytes(path, b"precious")

    with pytest.raises(AlreadyExistsError, match="data-1"):
        write_in_parts(storage, path)

    assert storage.files.read_bytes(path) == b"precious"


@pytest.mark.parametrize("storage", OF_SERVERS, indirect=True)
def test_a_pickled_storage_reaches_the_same_files(storage: Storage) -> None:
    storage.files.write_bytes(f"{storage.root}/file", b"x")

    files = pickle.loads(pickle.dumps(storage.files))  # noqa: S301  our own

    assert files.read_bytes(f"{storage.root}/file") == b"x"


def test_open_output_refuses_a_name_that_is_taken(storage: Storage) -> None:
    path = f"{storage.root}/data-1.parquet"
    storage.files.write_bytes(path, b"precious")

    with (  # raised on close at the latest
        pytest.raises(AlreadyExistsError, match="data-1"),
        storage.files.open_output(path) as output,
    ):
        output.write(b"other")

    assert storage.files.read_bytes(path) == b"precious"


def test_sync_of_nothing_does_nothing(storage: Storage) -> None:
    storage.files.sync([])

    assert not storage.files.exists(storage.root)


@pytest.mark.parametrize("files", [LocalFileIO(), MemoryFileIO()])
def test_sync_of_a_missing_file_is_an_error(files: FileIO, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="never-written"):
        files.sync([f"{tmp_path}/never-written"])


def test_names_with_spaces_percent_and_beyond_ascii_are_plain_names(storage: Storage) -> None:
    path = f"{storage.root}/p=a b%2Fc/stadt=Köln ☃/file"

    storage.files.write_bytes(path, b"x")

    assert storage.files.read_bytes(path) == b"x"
    assert names(storage) == {"p=a b%2Fc": True}
    assert names(storage, "/p=a b%2Fc") == {"stadt=Köln ☃": True}


@pytest.mark.parametrize("name", WITH_DIRECTORIES)
def test_a_directory_is_moved_with_all_that_is_in_it(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    storage = open_storage(name, request, tmp_path)
    old, new = f"{storage.root}/shop.db/orders", f"{storage.root}/other.db/purchases"
    storage.files.write_bytes(f"{old}/schema/schema-0", b"schema")
    storage.files.write_bytes(f"{old}/bucket-0/deep/file", b"rows")

    assert storage.files.rename_directory(old, new)

    assert not storage.files.exists(old)
    assert names(storage, "/other.db/purchases") == {"schema": True, "bucket-0": True}
    assert storage.files.read_bytes(f"{new}/bucket-0/deep/file") == b"rows"
    storage.files.write_bytes(f"{old}/schema/schema-0", b"another")
    assert not storage.files.rename_directory(old, new)
    assert storage.files.read_bytes(f"{new}/schema/schema-0") == b"schema"
    with pytest.raises(NotFoundError):
        storage.files.rename_directory(f"{storage.root}/nowhere", f"{storage.root}/there")


@pytest.mark.parametrize("name", WITHOUT_DIRECTORIES)
def test_a_store_without_directories_moves_none(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    storage = open_storage(name, request, tmp_path)
    storage.files.write_bytes(f"{storage.root}/a/file", b"x")

    with pytest.raises(InvalidInputError, match="has no atomic rename"):
        storage.files.rename_directory(f"{storage.root}/a", f"{storage.root}/b")
    assert storage.files.exists(f"{storage.root}/a/file")
