"""A table of the game: its options, drawn all at once."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib import InvalidInputError
from tests.game.functions import COMMUTING, ORDERED, RETRACTABLE
from tests.game.neutral_options import drawn_neutral

if TYPE_CHECKING:
    from collections.abc import Callable

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
GROUP = "fields.s.sequence-group"
PARTITIONS = ("a", "b", "c/ü")


@dataclass(frozen=True)
class DrawnTable:
    """What the model has to know of a table. ``key`` is empty for a bag of rows."""

    key: tuple[str, ...]
    is_partitioned: bool
    options: dict[str, str]

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
    def is_descending(self) -> bool:
        """Whether the smaller sequence is the newer one."""
        return self.options.get("sequence.field.sort-order") == "descending"

    @property
    def row_kind(self) -> str:
        return self.options.get("row-kind.field", "_row_kind")

    @property
    def has_log(self) -> bool:
        return self.options.get("log.system") != "none"

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
    def group(self) -> tuple[str, ...]:
        """Columns that only a row with an ``s`` not below the stored one sets; empty without such a group."""
        members = self.options.get(GROUP)
        return () if members is None else ("s", *members.split(","))

    @property
    def retracts(self) -> bool:
        """Whether a -D takes values out of the row of its key."""
        takes = bool(self.group) or "fields.s.ignore-retract" in self.options
        return takes and not self.removes and not self.ignores_deletes

    @property
    def kept_by_retractions(self) -> set[str]:
        """Columns that a -D leaves as they are."""
        return {*self.key, *(name for name in COLUMNS.names if f"fields.{name}.ignore-retract" in self.options)}

    @property
    def traits(self) -> set[str]:
        """Names of the features that the table has, for the statistics of pairs."""
        spelled = {f"{key}={value}" for key, value in self.options.items() if not key.endswith(".ignore-retract")}
        return spelled | {f"engine={self.engine}", "partitioned" if self.is_partitioned else "not partitioned"}


def draw_table(
    rng: Random, catalog: Catalog, refused: Callable[[DrawnTable, str], None], *, has_log: bool
) -> tuple[DrawnTable, DynamicTable]:
    """Draw options until a table can be created with them; ``refused`` takes those that can't, and the reasons."""
    for _ in range(200):
        drawn = draw(rng)
        if not has_log and "log.system" not in drawn.options:
            continue
        try:
            table = catalog.create_table(
                "game.t",
                COLUMNS,
                primary_key=list(drawn.key),
                partition_by=["p"] if drawn.is_partitioned else [],
                options=drawn.options,
            )
        except InvalidInputError as refusal:
            refused(drawn, str(refusal).removeprefix("table game.t: ")[:150])
            continue
        return drawn, table
    message = "too many drawn tables were refused"
    raise AssertionError(message)


def draw(rng: Random) -> DrawnTable:
    """Draw options, which the product may refuse."""
    kind = rng.choice(["keyed"] * 8 + ["bag", "append-only"])
    is_partitioned = rng.random() < 0.5
    options = {
        "file.format": rng.choice(["parquet", "parquet", "orc", "avro"]),
        **_draw_log(rng, kind),
        **drawn_neutral(rng, is_keyed=kind == "keyed"),
    }
    if rng.random() < 0.1:
        options["row-kind.field"] = "change"
    if kind == "keyed":
        key = ("p", "k") if is_partitioned and rng.random() < 0.7 else ("k",)
        return DrawnTable(key, is_partitioned, _draw_keyed(rng, options, key, is_partitioned=is_partitioned))
    if kind == "append-only":
        options |= {"write-mode": "append-only", "bucket": rng.choice(["-1", "-1", "2"])}
        if rng.random() < 0.3:
            options |= {"bucket": "2", "bucket-key": rng.choice(["k", "k,s"])}
    return DrawnTable((), is_partitioned, options)


def _draw_keyed(rng: Random, options: dict[str, str], key: tuple[str, ...], *, is_partitioned: bool) -> dict[str, str]:
    engine = rng.choice(["deduplicate", "deduplicate", "aggregation", "partial-update", "first-row"])
    options["bucket"] = rng.choice(["1", "2", "-1"])
    if "log.consistency" in options and rng.random() < 0.8:
        engine, options["bucket"] = "deduplicate", rng.choice(["1", "2"])  # other tables with a log are refused
    if options["bucket"] != "-1":
        options = {name: value for name, value in options.items() if not name.startswith("dynamic-bucket.")}
    if engine != "deduplicate":
        options["merge-engine"] = engine
    if engine in ("aggregation", "partial-update") and rng.random() < 0.5:
        options[f"{engine}.remove-record-on-delete"] = "true"
    elif rng.random() < 0.2:
        options["ignore-delete"] = "true"
    elif engine == "partial-update" and is_partitioned == ("p" in key) and rng.random() < 0.4:
        options[GROUP] = rng.choice(["n", "n,t"])
    # With other engines rows depend on when a compaction comes, as they do in Paimon, and with a key that moves between
    # partitions on which of them has seen which version.
    if engine in ("deduplicate", "aggregation") and is_partitioned == ("p" in key) and rng.random() < 0.4:
        options["sequence.field"] = "s"
        if rng.random() < 0.3:
            options["sequence.field.sort-order"] = "descending"
        if engine == "deduplicate" and rng.random() < 0.3:
            options["compaction.keep-deletes"] = "true"
    return options | (
        _draw_functions(rng, options, key, is_partitioned=is_partitioned) if engine == "aggregation" else {}
    )


def _draw_functions(
    rng: Random, options: dict[str, str], key: tuple[str, ...], *, is_partitioned: bool
) -> dict[str, str]:
    choices = COMMUTING if "sequence.field" in options else ORDERED
    chosen = {name: rng.choice(functions) for name, functions in choices.items()}
    functions = {f"fields.{name}.aggregate-function": function for name, function in chosen.items()}
    functions["fields.default-aggregate-function"] = "last_value"
    if "sequence.field" not in options and is_partitioned == ("p" in key):
        # The others are NOT NULL, or can't be retracted.
        kept = {"s", *({"p"} - {*key}), *(name for name in chosen if chosen[name] not in RETRACTABLE)}
        kept |= {"t"} if rng.random() < 0.5 else set()
        functions |= {f"fields.{name}.ignore-retract": "true" for name in sorted(kept)}
    return functions


def _draw_log(rng: Random, kind: str) -> dict[str, str]:
    if rng.random() < 0.6:
        return {"log.system": "none"}
    if kind != "keyed":
        return {"log.changelog-mode": rng.choice(["auto", "all"])}
    return {
        "log.changelog-mode": rng.choice(["auto", "all", "upsert"]),
        "log.consistency": rng.choice(["transactional", "transactional", "eventual"]),
    }
