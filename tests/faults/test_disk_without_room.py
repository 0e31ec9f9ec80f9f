"""A disk that is really full: a small private file system, and a limit on file sizes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, UnavailableError, open_catalog
from storage_lib.catalog.catalog import Catalog

SIZE = 3 << 20
COLUMNS = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted by root")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no small file system can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run([umount, str(place)], check=True)


def rows(first: int, count: int) -> pa.Table:
    """Return rows of random bytes, which no codec can compress."""
    text = [os.urandom(50).hex() for _ in range(count)]
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "text": text})


def new_table(catalog: Catalog, *, keyed: bool) -> DynamicTable:
    options = {"log.system": "none", "bucket": "1"} if keyed else {"log.system": "none", "write-mode": "append-only"}
    return catalog.create_table("shop.big", COLUMNS, primary_key=["id"] if keyed else [], options=options)


@pytest.mark.parametrize("keyed", [True, False])
def test_appends_until_the_disk_is_full_and_their_repetition_leave_each_row_once(
    small_disk: Path,
    keyed: bool,  # noqa: FBT001
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(SIZE // 3))
    table = new_table(open_catalog(str(small_disk)), keyed=keyed)
    number = -1

    def fill() -> None:
        nonlocal number
        while number < 60:
            number += 1
            table.append(rows(1000 * number, 300))

    with pytest.raises(UnavailableError, match=str(small_disk)) as full:
        fill()
    assert full.value.committed is False
    ballast.unlink()
    table.append(rows(1000 * number, 300))

    ids = sorted(open_catalog(str(small_disk)).load_table("shop.big").to_arrow()["id"].to_pylist())
    assert ids == [1000 * each + row for each in range(number + 1) for row in range(300)]


LIMITED = """
import json, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from storage_lib import StorageError, open_catalog
from tests.faults.test_disk_without_room import new_table, rows
table = new_table(open_catalog(sys.argv[1]), keyed=False)
table.append(rows(0, 20))
try:
    table.append(rows(1000, 1000))
except StorageError as error:
    print(json.dumps([type(error).__name__, error.committed, str(error)]))
"""


def test_a_file_that_may_not_grow_fails_the_write_and_says_so(tmp_path: Path) -> None:
    """Needs no private file system: the process may write files of 20 kB only."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )

    name, committed, message = json.loads(done.stdout)
    assert (name, committed) == ("UnavailableError", False)
    assert "File too large" in message
    assert "/bucket-" in message
    assert open_catalog(str(tmp_path)).load_table("shop.big").to_arrow().num_rows == 20
