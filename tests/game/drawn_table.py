"""A table of the game: its options, drawn all at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib import InvalidInputError

if TYPE_CHECKING:
    from storage_lib import DynamicTable
    from storage_lib.catalog.catalog import Catalog

COLUMNS = pa.schema(
    [
        pa.field("p", pa.string(), nullable=False),
        pa.field("k", pa.int64(), nullable=False),
        pa.field("s", pa.int32(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("x", pa.int32()),
        pa.field("t", pa.string()),
    ]
)
PARTITIONS = ("a", "b", "c/ü")
FUNCTIONS = {"s": "last_value", "n": "sum", "x": "max", "t": "last_value"}


@dataclass(frozen=True)
class DrawnTable:
    """What the model has to know of a table. ``key`` is empty for a bag of rows."""

    key: tuple[str, ...]
    is_partitioned: bool
    options: dict[str, str]
    refusals: list[str] = field(default_factory=list)
    """Reasons for which other drawn options were refused."""

    @property
    def engine(self) -> str:
        return self.options.get("merge-engine", "deduplicate") if self.key else "bag"

    @property
    def is_append_only(self) -> bool:
        return self.options.get("write-mode") == "append-only"

    @property
    def combines(self) -> bool:
        """Whether a written row is merged into the stored one."""
        return self.engine not in ("deduplicate", "bag")

    @property
    def sequence(self) -> str | None:
        return self.options.get("sequence.field")

    @property
    def is_log_first(self) -> bool:
        return self.options.get("log.consistency") == "eventual"

    @property
    def ignores_deletes(self) -> bool:
        return self.options.get("ignore-delete") == "true"

    @property
    def removes(self) -> bool:
        """Whether a -D removes the row of its key."""
        return not self.ignores_deletes and (
            self.engine == "deduplicate" or self.options.get(f"{self.engine}.remove-record-on-delete") == "true"
        )

    @property
    def traits(self) -> set[str]:
        """Names of the features that the table has, for the statistics of pairs."""
        spelled = {f"{key}={value}" for key, value in self.options.items() if not key.startswith("fields.")}
        return spelled | {f"engine={self.engine}", "partitioned" if self.is_partitioned else "not partitioned"}


def draw_table(rng: Random, catalog: Catalog) -> tuple[DrawnTable, DynamicTable]:
    """Draw options until a table can be created with them."""
    refusals: list[str] = []
    while True:
        drawn = _draw(rng, refusals)
        try:
            table = catalog.create_table(
                "game.t",
                COLUMNS,
                primary_key=list(drawn.key),
                partition_by=["p"] if drawn.is_partitioned else [],
                options=drawn.options,
            )
        except InvalidInputError as refusal:
            refusals.append(str(refusal))
            assert len(refusals) < 100, refusals[-1]
            continue
        return drawn, table


def _draw(rng: Random, refusals: list[str]) -> DrawnTable:
    kind = rng.choice(["keyed"] * 8 + ["bag", "append-only"])
    is_partitioned = rng.random() < 0.5
    options = {
        "file.format": rng.choice(["parquet", "parquet", "orc", "avro"]),
        "manifest.merge-min-count": rng.choice(["2", "30"]),
        "write-only": rng.choice(["false", "false", "true"]),
    } | _draw_log(rng, kind)
    if kind != "keyed":
        append_only = {"write-mode": "append-only", "bucket": rng.choice(["-1", "-1", "2"])}
        return DrawnTable((), is_partitioned, options | (append_only if kind == "append-only" else {}), refusals)
    options |= {
        "bucket": rng.choice(["1", "2", "-1"]),
        "changelog-producer": rng.choice(["none", "none", "input", "lookup", "full-compaction"]),
        "num-sorted-run.compaction-trigger": rng.choice(["2", "3", "5"]),
        "compaction.strategy": rng.choice(["universal", "leveled"]),
        "deletion-vectors.enabled": rng.choice(["false", "false", "true"]),
    }
    engine = rng.choice(["deduplicate", "deduplicate", "aggregation", "partial-update", "first-row"])
    if "log.consistency" in options and rng.random() < 0.8:
        engine, options["bucket"] = "deduplicate", rng.choice(["1", "2"])  # other tables with a log are refused
    if options["bucket"] == "-1":
        options["dynamic-bucket.target-row-num"] = rng.choice(["3", "2000000"])
    if engine != "deduplicate":
        options["merge-engine"] = engine
    if engine in ("aggregation", "partial-update") and rng.random() < 0.5:
        options[f"{engine}.remove-record-on-delete"] = "true"
    elif rng.random() < 0.2:
        options["ignore-delete"] = "true"
    if engine == "aggregation":
        options |= {f"fields.{name}.aggregate-function": function for name, function in FUNCTIONS.items()}
        options["fields.default-aggregate-function"] = "last_value"
    key = ("p", "k") if is_partitioned and rng.random() < 0.7 else ("k",)
    # With other engines rows depend on when a compaction comes, as they do in Paimon, and with a key that moves between
    # partitions on which of them has seen which version.
    if engine in ("deduplicate", "aggregation") and is_partitioned == ("p" in key) and rng.random() < 0.4:
        options["sequence.field"] = "s"
    return DrawnTable(key, is_partitioned, options, refusals)


def _draw_log(rng: Random, kind: str) -> dict[str, str]:
    if rng.random() < 0.6:
        return {"log.system": "none"}
    if kind != "keyed":
        return {"log.changelog-mode": rng.choice(["auto", "all"])}
    return {
        "log.changelog-mode": rng.choice(["auto", "all", "upsert"]),
        "log.consistency": rng.choice(["transactional", "transactional", "eventual"]),
    }
