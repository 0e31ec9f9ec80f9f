"""Expected content of the soak's eventual table: each writer has its own keys, and its last commit of a key wins."""

from __future__ import annotations

import random

import pyarrow as pa

from tests.support.orders_table import rows

EVENTUAL_TABLE = "shop.readings"
EVENTUAL_STREAM, EVENTUAL_BATCH = "eventual-stream", "eventual-batch"
EVENTUAL_WRITERS = (EVENTUAL_STREAM, EVENTUAL_BATCH)
_IDS = 30
_PLACES = 100


def partition_of(name: str) -> str:
    """Return the partition of a writer's keys."""
    return "ab"[EVENTUAL_WRITERS.index(name)]


def eventual_changes(seed: int, name: str, number: int) -> list[str]:
    """Return the changes of commit ``number`` of a writer, each key once; every price encodes the number."""
    dice = random.Random(f"{seed} {name} {number}")  # noqa: S311  chance, not secrets
    ids = dice.sample(range(_IDS), dice.randint(1, 12))
    return [
        f"{dice.choice(['+I', '+U', '+U', '-D'])} {partition_of(name)} {id_} {number * _PLACES + at}"
        for at, id_ in enumerate(ids)
    ]


def eventual_rows(seed: int, name: str, number: int) -> pa.Table:
    """Return the same changes as Arrow rows."""
    return rows(*eventual_changes(seed, name, number))


def number_of(price: int) -> int:
    """Return the number of the commit that wrote a price."""
    return price // _PLACES
