"""Write, read and space amplification of the compaction strategies: bytes per byte of user data.

    python -m benchmarks.amplification [--rows 400000] [--commits 120] [--commit-rows 8000] [--seed 7]

A table is loaded, then updated commit by commit. The ids of the updates are uniform or skewed (Zipf's law). Compaction
runs after a commit if it is due. Sizes are scaled down so that a run takes about two minutes; the ratios matter, not
the seconds, and with the same seed they are the same on every machine.

    written    bytes of all data files ever written / bytes that the commits themselves wrote
    kept       bytes of the live data files / bytes when fully compacted, mean over time
    scanned    bytes that a full scan reads / bytes when fully compacted, mean over time
    look-up    bytes that the look-up of one id reads, and files that it opens, mean over time and ids

Prints a table, and writes ``benchmarks/results/amplification.json`` and ``amplification.svg``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib import DynamicTable, col
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.file_store.manifest.manifest_entry import FileKind
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO

RESULTS = Path(__file__).parent / "results"
STRATEGIES = {
    "universal": {"compaction.strategy": "universal"},
    "leveled": {
        "compaction.strategy": "leveled",
        "compaction.max-bytes-for-level-base": "4 mb",
        "compaction.max-bytes-for-level-multiplier": "5",
    },
}
STREAMS = ("uniform", "skewed")
KINDS = (CommitKind.APPEND, CommitKind.COMPACT)
LOOKUPS = 5
SAMPLED_EVERY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplification:
    """Results of one strategy under one stream; bytes are those of data files."""

    stream: str
    strategy: str
    rows: int
    commits: int
    commit_rows: int
    seed: int
    user_bytes: int
    compacted_bytes: int
    written: float
    read_by_compaction: float
    kept: float
    kept_at_most: float
    scanned: float
    lookup_bytes: float
    lookup_files: float
    runs: float
    runs_at_most: int
    compactions: int
    seconds: float


def main() -> None:
    """Run the benchmark, print the results and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--commits", type=int, default=120)
    parser.add_argument("--commit-rows", type=int, default=8_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "amplification_benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    measured = []
    for stream in STREAMS:
        for strategy in STRATEGIES:
            shutil.rmtree(arguments.directory, ignore_errors=True)
            measured.append(measure(arguments, stream, strategy))
            print(told(measured[-1]), flush=True)
    shutil.rmtree(arguments.directory, ignore_errors=True)
    arguments.results.mkdir(parents=True, exist_ok=True)
    records = [asdict(each) for each in measured]
    (arguments.results / "amplification.json").write_text(json.dumps(records, indent=1) + "\n")
    (arguments.results / "amplification.svg").write_text(picture_of(measured))


def measure(arguments: argparse.Namespace, stream: str, strategy: str) -> Amplification:
    """Load and update the table, and sample it every few commits."""
    random = np.random.default_rng(arguments.seed)
    files = CountingFileIO()
    catalog = WarehouseCatalog(str(arguments.directory), environment=system_environment(files))
    schema = pa.schema([("id", pa.int64()), ("amount", pa.int64()), ("name", pa.string())])
    options = {"log.system": "none", "target-file-size": "1 mb", **STRATEGIES[strategy]}
    table = catalog.create_table("bench.t", schema, primary_key=["id"], options=options)
    begin = time.perf_counter()
    table.append(rows_of(random.permutation(arguments.rows), random))
    table.compact()
    compacted_bytes = live_bytes(table)
    first = table.context.file_store.snapshots.latest_id() or 0
    kept, scanned, lookup_bytes, lookup_files, runs = [], [], [], [], []
    for number, ids in enumerate(drawn(arguments, stream, random), 1):
        table.append(rows_of(ids, random))
        kept.append(live_bytes(table) / compacted_bytes)
        runs.append(run_count(table))
        if number % SAMPLED_EVERY == 0:
            scanned.append(bytes_read(files, table, None) / compacted_bytes)
            for wanted in random.integers(0, arguments.rows, LOOKUPS):
                lookup_bytes.append(bytes_read(files, table, int(wanted)))
                lookup_files.append(len(table.new_read(filter=col("id") == int(wanted)).plan().entries))
    snapshots = [table.context.file_store.snapshots.load(each) for each in range(first + 1, latest_id(table) + 1)]
    written_by = {kind: sum(bytes_of(table, each, FileKind.ADD) for each in of(snapshots, kind)) for kind in KINDS}
    read = sum(bytes_of(table, each, FileKind.DELETE) for each in of(snapshots, CommitKind.COMPACT))
    user_bytes = written_by[CommitKind.APPEND]
    return Amplification(
        stream=stream,
        strategy=strategy,
        rows=arguments.rows,
        commits=arguments.commits,
        commit_rows=arguments.commit_rows,
        seed=arguments.seed,
        user_bytes=user_bytes,
        compacted_bytes=compacted_bytes,
        written=round(sum(written_by.values()) / user_bytes, 3),
        read_by_compaction=round(read / user_bytes, 3),
        kept=round(mean(kept), 3),
        kept_at_most=round(max(kept), 3),
        scanned=round(mean(scanned), 3),
        lookup_bytes=round(mean(lookup_bytes)),
        lookup_files=round(mean(lookup_files), 2),
        runs=round(mean(runs), 2),
        runs_at_most=max(runs),
        compactions=len(of(snapshots, CommitKind.COMPACT)),
        seconds=round(time.perf_counter() - begin, 1),
    )


def rows_of(ids: npt.NDArray[np.int64], random: np.random.Generator) -> pa.Table:
    """Return rows of about 28 bytes each that hardly compress."""
    letters = random.integers(97, 123, 12 * len(ids), dtype=np.uint8)
    offsets = np.arange(0, 12 * len(ids) + 1, 12, dtype=np.int32)
    names = pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    return pa.table({"id": ids.astype(np.int64), "amount": random.integers(0, 2**40, len(ids)), "name": names})


def drawn(arguments: argparse.Namespace, stream: str, random: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the ids of each commit; popular ids are spread over the whole range."""
    if stream == "uniform":
        for _ in range(arguments.commits):
            yield random.integers(0, arguments.rows, arguments.commit_rows)
        return
    by_popularity = random.permutation(arguments.rows)
    share = np.cumsum(1 / np.arange(1, arguments.rows + 1))
    for _ in range(arguments.commits):
        ranks = np.searchsorted(share, random.random(arguments.commit_rows) * share[-1])
        yield by_popularity[ranks]


def of(snapshots: list[Snapshot], kind: CommitKind) -> list[Snapshot]:
    """Return the snapshots of one commit kind."""
    return [snapshot for snapshot in snapshots if snapshot.commit_kind is kind]


def bytes_of(table: DynamicTable, snapshot: Snapshot, kind: FileKind) -> int:
    """Return the bytes of files that a snapshot added or deleted (``kind``); files that it only moved don't count."""
    delta = table.context.file_store.scan.delta(snapshot)
    names = [entry.file.file_name for entry in delta]
    return sum(e.file.file_size for e in delta if e.kind is kind and names.count(e.file.file_name) == 1)


def live_bytes(table: DynamicTable) -> int:
    """Return the bytes of the newest snapshot's data files."""
    return table.new_read().plan().size_bytes


def run_count(table: DynamicTable) -> int:
    """Return the number of sorted runs: files of level 0, and further levels."""
    levels = [entry.file.level for entry in table.new_read().plan().entries]
    return levels.count(0) + len(set(levels) - {0})


def latest_id(table: DynamicTable) -> int:
    """Return the newest snapshot's id; 0 for an empty table."""
    return table.context.file_store.snapshots.latest_id() or 0


def bytes_read(files: CountingFileIO, table: DynamicTable, wanted: int | None) -> int:
    """Return the bytes that the look-up of an id reads, or a full scan if ``wanted`` is None."""
    files.bytes_read = 0
    for _ in table.read(filter=None if wanted is None else col("id") == wanted):
        pass
    return files.bytes_read


def mean(values: list[float] | list[int]) -> float:
    """Return the arithmetic mean."""
    return float(np.mean(values))


class CountingFileIO(LocalFileIO):
    """File IO that counts the bytes read from files."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file whose reads go through Python, to be counted."""
        return pa.PythonFile(_CountedFile(super().open_input(path), self), mode="r")


class _CountedFile:
    def __init__(self, file: pa.NativeFile, counter: CountingFileIO) -> None:
        self._file = file
        self._counter = counter
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(None if size < 0 else size)
        self._counter.bytes_read += len(data)
        return bytes(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def size(self) -> int:
        return int(self._file.size())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        self.closed = True


def told(each: Amplification) -> str:
    """Return the result as one line of text."""
    return (
        f"{each.stream:8} {each.strategy:10} written {each.written:6.2f}   kept {each.kept:5.2f} "
        f"(at most {each.kept_at_most:.2f})   scanned {each.scanned:5.2f}   look-up {each.lookup_bytes / 1024:7.0f} "
        f"KiB in {each.lookup_files:.1f} files   runs {each.runs:.1f} (at most {each.runs_at_most})   "
        f"{each.compactions} compactions   {each.seconds:.0f} s"
    )


PANELS = (
    ("written", "bytes written / byte of user data"),
    ("kept", "bytes kept / byte when compacted"),
    ("scanned", "bytes read by a scan / byte when compacted"),
    ("lookup_files", "files opened by a look-up"),
)
COLOURS = {"universal": "#1b6e53", "leveled": "#e0a030"}
PANEL_WIDTH, BAR_WIDTH, HEIGHT, TOP = 210, 34, 170, 70


def picture_of(measured: list[Amplification]) -> str:
    """Return an SVG with a panel for each measure and a pair of bars for each stream."""
    parts = []
    for index, strategy in enumerate(STRATEGIES):
        x = 10 + 110 * index
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[strategy]}"/>')
        parts.append(f'<text x="{x + 15}" y="37">{escape(strategy)}</text>')
    for panel, (measure_name, title) in enumerate(PANELS):
        left = 10 + PANEL_WIDTH * panel
        highest = max(getattr(each, measure_name) for each in measured)
        parts.append(f'<text x="{left}" y="{TOP - 12}" font-size="10">{escape(title)}</text>')
        for position, stream in enumerate(STREAMS):
            x = left + 10 + position * 95
            parts.append(f'<text x="{x + BAR_WIDTH}" y="{TOP + HEIGHT + 14}" text-anchor="middle">{stream}</text>')
            for each in (each for each in measured if each.stream == stream):
                value = getattr(each, measure_name)
                height = (HEIGHT - 16) * value / highest
                y = TOP + HEIGHT - height
                colour = COLOURS[each.strategy]
                parts.append(
                    f'<rect x="{x}" y="{y:.1f}" width="{BAR_WIDTH - 3}" height="{height:.1f}" fill="{colour}"/>'
                    f'<text x="{x + BAR_WIDTH / 2 - 1:.1f}" y="{y - 4:.1f}" text-anchor="middle">{value:.2f}</text>'
                )
                x += BAR_WIDTH
    width, height = 20 + PANEL_WIDTH * len(PANELS), TOP + HEIGHT + 26
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        '<text x="10" y="17" font-size="13">Amplification, universal and leveled: lower is better</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
