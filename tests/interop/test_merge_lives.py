"""Random histories of tables of every merge engine, written and compacted by us and Paimon's Java core: same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS, RowKind
from tests.support.deep_tests import thinned
from tests.support.paimon_core import PaimonCore

IDENTIFIER = "db.t"
NUMBERS = ("a", "b", "s")
LIVES = 6
PARTIAL_UPDATE = {"merge-engine": "partial-update"}
FUNCTIONS = ("sum", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value")
TAKE_BACK = ("sum", "last_value", "last_non_null_value")
ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)
RETRACTS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)
Changes = list[tuple[RowKind, tuple[int | None, ...]]]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One merge engine; ``kinds`` are the accepted row kinds, ``writers`` those whose files both read alike."""

    options: dict[str, str]
    kinds: tuple[RowKind, ...] = ADDS
    writers: tuple[str, ...] = ("java", "ours")


def _aggregation(rng: Random, functions: tuple[str, ...] = FUNCTIONS) -> dict[str, str]:
    chosen = {f"fields.{name}.aggregate-function": rng.choice(functions) for name in NUMBERS}
    return {"merge-engine": "aggregation", **chosen}


def _by_sequence(rng: Random, options: dict[str, str]) -> dict[str, str]:
    ordered = {name: value for name, value in options.items() if not name.startswith("fields.s.")}
    return {**ordered, "sequence.field": "s", "sequence.field.sort-order": rng.choice(("ascending", "descending"))}


ENGINES: dict[str, Callable[[Random], Engine]] = {
    "deduplicate by sequence": lambda rng: Engine(options=_by_sequence(rng, {}), kinds=(*ADDS, RowKind.DELETE)),
    "aggregation": lambda rng: Engine(options=_aggregation(rng)),
    "aggregation, retracted": lambda rng: Engine(options=_aggregation(rng, TAKE_BACK), kinds=ADDS + RETRACTS),
    "aggregation by sequence, retracted": lambda rng: Engine(
        options=_by_sequence(rng, _aggregation(rng, TAKE_BACK)), kinds=ADDS + RETRACTS
    ),
    # Java's result for removals in its own files depends on when it compacts: docs/decisions/0014.
    "aggregation, removed": lambda rng: Engine(
        options=_aggregation(rng, FUNCTIONS[:-1]) | {"aggregation.remove-record-on-delete": "true"},
        kinds=(*ADDS, RowKind.DELETE),
        writers=("ours",),
    ),
    "partial-update, removed": lambda rng: Engine(
        options=PARTIAL_UPDATE | {"partial-update.remove-record-on-delete": "true"},
        kinds=(*ADDS, RowKind.DELETE),
        writers=("ours",),
    ),
    "a sequence group": lambda _: Engine(options=PARTIAL_UPDATE | {"fields.s.sequence-group": "a,b"}),
    "a sequence group, retracted": lambda _: Engine(
        options=PARTIAL_UPDATE | {"fields.s.sequence-group": "a,b"}, kinds=ADDS + RETRACTS
    ),
}


@pytest.mark.parametrize("seed", thinned(range(LIVES), keep=2))
@pytest.mark.parametrize("name", ENGINES)
def test_whoever_writes_and_compacts_both_read_the_same(
    paimon_core: PaimonCore, tmp_path: Path, name: str, seed: int
) -> None:
    rng = Random(f"{name} {seed}")  # noqa: S311  chance, not secrets
    engine = ENGINES[name](rng)
    producer = {"changelog-producer": "lookup"} if seed % 3 == 2 else {}
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table(
        IDENTIFIER,
        {"k": "BIGINT", **dict.fromkeys(NUMBERS, "BIGINT")},
        primary_key=["k"],
        options={"bucket": "1", **engine.options, **producer},
    )
    life: list[tuple[str, Changes | str]] = []
    for _ in range(rng.randint(2, 6)):
        writer = rng.choice(engine.writers)
        changes = list(_changes(rng, engine.kinds))
        life.append((writer, changes))
        if writer == "java":
            kinds = [kind for kind, _ in changes]
            paimon_core.write(tmp_path, IDENTIFIER, [row for _, row in changes], table.schema, kinds)
        else:
            _append(catalog.load_table(IDENTIFIER), changes)
        if rng.random() < 0.25:
            compacter = rng.choice(engine.writers)
            life.append((compacter, "compact"))
            if compacter == "java":
                paimon_core.compact(tmp_path, IDENTIFIER)
            else:
                catalog.load_table(IDENTIFIER).compact(full=True)

        ours = _in_order(tuple(row.values()) for row in catalog.load_table(IDENTIFIER).to_arrow().to_pylist())
        assert ours == _in_order(paimon_core.read(tmp_path, IDENTIFIER, table.schema)), (table.schema.options, life)


def _changes(rng: Random, kinds: tuple[RowKind, ...]) -> Iterator[tuple[RowKind, tuple[int | None, ...]]]:
    for _ in range(rng.randint(1, 5)):
        numbers = [None if rng.random() < 0.2 else rng.randrange(1, 30) for _ in NUMBERS]
        yield rng.choice(kinds), (rng.randrange(2), *numbers)


def _append(table: DynamicTable, changes: Changes) -> None:
    columns = [pa.array([row[place] for _, row in changes], pa.int64()) for place in range(len(NUMBERS) + 1)]
    kinds = pa.array([ROW_KIND_SYMBOLS[kind] for kind, _ in changes])
    table.append(pa.table([*columns, kinds], names=["k", *NUMBERS, "_row_kind"]))


def _in_order(rows: Any) -> list[tuple[int | None, ...]]:
    return sorted(rows, key=repr)
