"""Behaviour specific to a disk: crashes between steps, fsync, several processes, full disks."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from storage_lib.errors import CommitOutcomeUnknownError, InvalidInputError, StorageError, UnavailableError
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.table_directory.numbered_files import NumberedFiles
from tests.support.faulty_file_io import SimulatedCrash


@pytest.fixture
def files() -> LocalFileIO:
    return LocalFileIO()


class Recorder:
    """Records system calls and the names of their files."""

    def __init__(self, patch: pytest.MonkeyPatch, *calls: str) -> None:
        self.seen: list[tuple[str, str]] = []
        for call in calls:
            patch.setattr(os, call, self._recording(call, getattr(os, call)))

    def _recording(self, call: str, real: Callable[..., object]) -> Callable[..., object]:
        def recording(target: int | str, *arguments: object, **named: object) -> object:
            path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else target
            self.seen.append((call, Path(path).name))
            return real(target, *arguments, **named)

        return recording


def fail_with(code: int) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_created_file_is_synced_before_it_is_linked_and_its_directory_after(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "snapshot"
    directory.mkdir()
    recorder = Recorder(monkeypatch, "fsync", "link")

    files.create_if_absent(f"{directory}/snapshot-1", b"x")

    calls = [call for call, _ in recorder.seen]
    assert calls == ["fsync", "link", "fsync"]
    (first, second), last = (name for _, name in recorder.seen[:2]), recorder.seen[2][1]
    assert first == second
    assert first.startswith(".snapshot-1.")
    assert last == "snapshot"


def test_new_parents_are_synced_in_their_own_parents(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch, "fsync")

    files.create_if_absent(f"{tmp_path}/db.db/table/schema/schema-0", b"x")

    synced = {name for _, name in recorder.seen}
    assert {tmp_path.name, "db.db", "table", "schema"} <= synced


def test_sync_makes_streamed_files_durable_with_every_directory_made_for_them(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch, "fsync")
    paths = [f"{tmp_path}/dt=1/bucket-{bucket}/data-{bucket}.parquet" for bucket in range(3)]
    for path in paths:
        with files.open_output(path) as output:
            output.write(b"x")
    assert recorder.seen == []

    files.sync(paths)
    first = [name for _, name in recorder.seen]
    recorder.seen.clear()
    files.sync(paths[:1])

    assert sorted(first) == sorted(
        [*(Path(path).name for path in paths), "bucket-0", "bucket-1", "bucket-2", "dt=1", tmp_path.name]
    )
    assert sorted(name for _, name in recorder.seen) == ["bucket-0", "data-0.parquet"]


def test_without_durability_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, "fsync")
    files = LocalFileIO(durable=False)

    files.create_if_absent(f"{tmp_path}/a/b", b"x")
    files.write_bytes(f"{tmp_path}/c/d", b"x")
    files.make_directory(f"{tmp_path}/e/f")
    files.sync([f"{tmp_path}/c/d"])

    assert recorder.seen == []


def test_replace_is_not_synced(files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, "fsync")

    files.replace(f"{tmp_path}/LATEST", b"1")

    assert recorder.seen == []


@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_crash_before_the_link_leaves_nothing_visible(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The crash is that of the process: another process examines the remaining files."""
    numbered = NumberedFiles(files, f"{tmp_path}/snapshot", "snapshot-", hints=True)
    assert numbered.create(1, b"one")

    def die(*_: object) -> None:
        raise SimulatedCrash(call)

    with monkeypatch.context() as broken:
        broken.setattr(os, call, die)
        broken.setattr(Path, "unlink", die)  # a crashed process cleans up nothing
        with pytest.raises(SimulatedCrash):
            numbered.create(2, b"two")

    reopened = NumberedFiles(files, f"{tmp_path}/snapshot", "snapshot-", hints=True)
    left = {entry.name for entry in files.list_directory(f"{tmp_path}/snapshot")}
    assert any(name.startswith(".snapshot-2.") for name in left)
    assert reopened.ids() == [1]
    assert reopened.latest_id() == 1
    assert reopened.create(2, b"another two")
    assert reopened.load(2) == b"another two"


def test_a_crash_after_the_link_leaves_the_whole_file(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link_and_die(*paths: str) -> None:
        real(*paths)
        raise SimulatedCrash

    with monkeypatch.context() as broken:
        broken.setattr(os, "link", link_and_die)
        with pytest.raises(SimulatedCrash):
            files.create_if_absent(f"{tmp_path}/snapshot-1", b"whole")

    assert files.read_bytes(f"{tmp_path}/snapshot-1") == b"whole"
    assert not files.create_if_absent(f"{tmp_path}/snapshot-1", b"late")


def test_what_was_written_aside_is_gone_after_losing(files: LocalFileIO, tmp_path: Path) -> None:
    path = f"{tmp_path}/snapshot-1"
    files.create_if_absent(path, b"x")

    assert not files.create_if_absent(path, b"y")

    assert os.listdir(tmp_path) == ["snapshot-1"]  # noqa: PTH208


def test_a_link_whose_answer_the_network_lost_is_still_ours(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS repeats an unanswered request; the repetition finds the name taken, by this process itself."""
    real = os.link

    def link_twice(*paths: str) -> None:
        real(*paths)
        real(*paths)

    monkeypatch.setattr(os, "link", link_twice)

    assert files.create_if_absent(f"{tmp_path}/snapshot-1", b"x")


def test_a_directory_that_cannot_be_synced_leaves_the_outcome_unknown(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fail_on_directories(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fail_on_directories)

    with pytest.raises(CommitOutcomeUnknownError, match="snapshot-1"):
        files.create_if_absent(f"{tmp_path}/snapshot-1", b"x")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, UnavailableError),
        (errno.EIO, UnavailableError),
        (errno.ESTALE, UnavailableError),
        (errno.EROFS, InvalidInputError),
        (errno.EACCES, InvalidInputError),
    ],
)
@pytest.mark.parametrize("act", ["create_if_absent", "write_bytes", "replace"])
def test_a_disk_in_trouble_is_told_from_a_wrong_path(
    files: LocalFileIO,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    expected: type[StorageError],
    act: str,
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", fail_with(code))
        with pytest.raises(expected, match="snapshot-1"):
            getattr(files, act)(f"{tmp_path}/snapshot-1", b"x")

    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_name_too_long_for_the_disk_is_the_callers_error(files: LocalFileIO, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="name too long"):
        files.write_bytes(f"{tmp_path}/p={'x' * 300}/file", b"x")


def test_a_file_system_without_links_is_refused_with_a_remedy(
    files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail_with(errno.EPERM))

    with pytest.raises(InvalidInputError, match="hard links"):
        files.create_if_absent(f"{tmp_path}/snapshot-1", b"x")

    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_short_write_is_continued(files: LocalFileIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))

    files.write_bytes(f"{tmp_path}/file", b"0123456789")

    assert files.read_bytes(f"{tmp_path}/file") == b"0123456789"


def test_it_travels_to_other_processes(tmp_path: Path) -> None:
    copy = pickle.loads(pickle.dumps(LocalFileIO(durable=False)))  # noqa: S301  our own bytes

    copy.write_bytes(f"{tmp_path}/file", b"x")

    assert copy._durable is False
    assert copy.read_bytes(f"{tmp_path}/file") == b"x"


def _numbers_won(directory: str, me: int) -> list[int]:
    numbered = NumberedFiles(LocalFileIO(), directory, "snapshot-", hints=True)
    won = []
    for _ in range(60):
        following = (numbered.latest_id() or 0) + 1
        if numbered.create(following, f"{me}:{following}".encode()):
            won.append(following)
    return won


@pytest.mark.integration
def test_of_processes_that_race_for_every_number_each_number_has_one_winner(tmp_path: Path) -> None:
    directory = f"{tmp_path}/snapshot"
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as processes:
        racers = [processes.submit(_numbers_won, directory, me) for me in range(3)]
        won = {me: racer.result() for me, racer in enumerate(racers)}

    numbered = NumberedFiles(LocalFileIO(), directory, "snapshot-", hints=True)
    everybody = sorted(number for numbers in won.values() for number in numbers)
    assert everybody == numbered.ids() == list(range(1, len(everybody) + 1))
    assert len(everybody) >= 60
    for me, numbers in won.items():
        assert all(numbered.load(number) == f"{me}:{number}".encode() for number in numbers)
    assert int((Path(directory) / "LATEST").read_text()) <= everybody[-1]
