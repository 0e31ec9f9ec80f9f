"""What the soak's eventual table has to hold: each writer has keys of its own, so the last of its commits counts."""

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
    """Where a writer's keys are."""
    return "ab"[EVENTUAL_WRITERS.index(name)]


def eventual_changes(seed: int, name: str, number: int) -> list[str]:
    """What commit ``number`` of a writer holds. No key twice; prices, also of what is deleted, tell the number."""
    dice = random.Random(f"{seed} {name} {number}")  # noqa: S311  chance, not secrets
    ids = dice.sample(range(_IDS), dice.randint(1, 12))
    return [
        f"{dice.choice(['+I', '+U', '+U', '-D'])} {partition_of(name)} {id_} {number * _PLACES + at}"
        for at, id_ in enumerate(ids)
    ]


def eventual_rows(seed: int, name: str, number: int) -> pa.Table:
    """The same as Arrow rows."""
    return rows(*eventual_changes(seed, name, number))


def number_of(price: int) -> int:
    """The commit that a price is of."""
    return price // _PLACES
