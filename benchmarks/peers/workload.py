"""Data of the peers' workload and the expected answers about it; deterministic for a given ``Size``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

BUCKETS = 4
DAYS = 30
FILTER_ABOVE = 0.999
LOOKED_UP = 10
SCANNED = ("amount", "score", "name", "ts")

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("dt", pa.string(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("score", pa.float64()),
        pa.field("ts", pa.timestamp("us")),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Amount of work: rows of W1, number and rows of W2's upserts, commits of W5 and W6."""

    rows: int = 3_000_000
    upserts: int = 10
    upsert_rows: int = 200_000
    small_commits: int = 200
    small_rows: int = 100
    writers: int = 4
    writer_commits: int = 10
    writer_rows: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Answer to W3's scan. ``score`` is a float sum, so it is compared with a tolerance."""

    count: int
    amount: Decimal
    score: float
    letters: int
    newest: datetime

    def agrees_with(self, other: Totals) -> bool:
        """Return whether both are totals of the same rows, apart from the order of summation."""
        same = all(
            getattr(self, field.name) == getattr(other, field.name) for field in fields(self) if field.name != "score"
        )
        return same and abs(self.score - other.score) <= 1e-6 * max(1.0, abs(other.score))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Expected results before and after the upserts are merged, and the keys to look up."""

    totals: Totals
    matching_filter: int
    looked_up: tuple[int, ...]
    names_looked_up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """Arrow IPC files in one directory, written once and memory-mapped by every system."""

    directory: Path
    size: Size

    @property
    def load(self) -> pa.Table:
        """Rows of W1."""
        return _read(self.directory / "load.arrow")

    def upsert(self, index: int) -> pa.Table:
        """Return the rows of the ``index``-th commit of W2."""
        return _read(self.directory / f"upsert-{index}.arrow")

    def small(self, index: int) -> pa.Table:
        """Return the rows of the ``index``-th commit of W5: new keys, all of one day."""
        return _small_rows(index * self.size.small_rows, self.size.small_rows, index % DAYS)

    def of_writer(self, writer: int, index: int) -> pa.Table:
        """Return the rows of the ``index``-th commit of one of W6's writers, with keys that no other writer has."""
        first = (writer * self.size.writer_commits + index) * self.size.writer_rows
        return _small_rows(first, self.size.writer_rows, writer % DAYS)

    def make(self) -> Answers:
        """Write the files and compute the expected answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(7)
        parts = [rows_of(random.permutation(self.size.rows), random)]
        parts += [
            rows_of(random.integers(0, self.size.rows * 4 // 3, self.size.upsert_rows), random)
            for _ in range(self.size.upserts)
        ]
        for index, part in enumerate(parts):
            name = "load.arrow" if index == 0 else f"upsert-{index - 1}.arrow"
            with pa.OSFile(str(self.directory / name), "wb") as file, pa.ipc.new_file(file, part.schema) as writer:
                writer.write_table(part)
        return answers_of(newest_of_each_key(parts))


def rows_of(ids: npt.NDArray[np.int64], random: np.random.Generator) -> pa.Table:
    """Return rows with those keys; ``name`` is 12 random letters."""
    count = len(ids)
    letters = random.integers(97, 123, 12 * count, dtype=np.uint8)
    offsets = np.arange(0, 12 * count + 1, 12, dtype=np.int32)
    names = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    columns = [
        pa.array(ids.astype(np.int64)),
        _days().take(pa.array(ids % DAYS)),
        names,
        _cents(random.integers(0, 10**7, count)),
        pa.array(random.random(count)),
        pa.array(random.integers(1_700_000_000_000_000, 1_710_000_000_000_000, count)).cast(pa.timestamp("us")),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def newest_of_each_key(parts: list[pa.Table]) -> pa.Table:
    """Return the newest row of each key, computed by Polars, which shares no code with any measured system."""
    frame = pl.concat([pl.DataFrame(part) for part in parts])
    return frame.unique("id", keep="last").to_arrow()


def answers_of(rows: pa.Table) -> Answers:
    """Return the expected answers for a table with those rows."""
    ordered = rows.sort_by("id")
    step = max(1, ordered.num_rows // LOOKED_UP)
    wanted = ordered.take(pa.array(range(0, step * LOOKED_UP, step)))
    return Answers(
        totals=totals_of(rows),
        matching_filter=int(pc.sum(pc.greater(rows["score"], FILTER_ABOVE)).as_py()),
        looked_up=tuple(wanted["id"].to_pylist()),
        names_looked_up=tuple(wanted["name"].to_pylist()),
    )


def totals_of(rows: pa.Table) -> Totals:
    """Return the totals of W3, computed by pyarrow."""
    return Totals(
        count=rows.num_rows,
        amount=pc.sum(rows["amount"]).as_py(),
        score=pc.sum(rows["score"]).as_py(),
        letters=pc.sum(pc.utf8_length(rows["name"])).as_py(),
        newest=pc.max(rows["ts"]).as_py(),
    )


def answers_to_json(answers: Answers) -> dict[str, object]:
    """Return the answers as JSON values, for a worker process."""
    values = asdict(answers)
    totals = answers.totals
    values["totals"] = {
        **asdict(totals),
        "amount": str(totals.amount),
        "newest": totals.newest.isoformat(),
    }
    return values


def answers_from_json(values: dict[str, object]) -> Answers:
    """Parse the result of ``answers_to_json``."""
    totals: dict[str, object] = dict(values["totals"])  # type: ignore[call-overload]
    return Answers(
        totals=Totals(
            count=int(str(totals["count"])),
            amount=Decimal(str(totals["amount"])),
            score=float(str(totals["score"])),
            letters=int(str(totals["letters"])),
            newest=datetime.fromisoformat(str(totals["newest"])),
        ),
        matching_filter=int(str(values["matching_filter"])),
        looked_up=tuple(values["looked_up"]),  # type: ignore[arg-type]
        names_looked_up=tuple(values["names_looked_up"]),  # type: ignore[arg-type]
    )


def _small_rows(first: int, count: int, day: int) -> pa.Table:
    rows = rows_of(np.arange(first, first + count), np.random.default_rng(first))
    return rows.set_column(1, SCHEMA.field("dt"), pa.repeat(_days()[day], count))


def _days() -> pa.Array:
    return pa.array([f"2024-01-{day:02d}" for day in range(1, DAYS + 1)])


def _cents(cents: npt.NDArray[np.int64]) -> pa.Array:
    words = np.zeros((len(cents), 2), dtype="<i8")
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words)])


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
