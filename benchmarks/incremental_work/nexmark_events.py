"""Seeded events of Nexmark: of 50, one is a new person, three are new auctions, and 46 are bids.

In addition, one auction in ten is changed later (its reserve and its end), one in fifty is deleted, and so is one bid
in a hundred. Ids are the numbers of the persons, auctions and bids; times are BIGINT epoch milliseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

COLUMNS = {
    "person": pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            *(pa.field(name, pa.string()) for name in ("name", "email", "city", "state")),
            pa.field("created", pa.int64()),
        ]
    ),
    "auction": pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("item_name", pa.string()),
            *(
                pa.field(name, pa.int64())
                for name in ("initial_bid", "reserve", "created", "expires", "seller", "category")
            ),
        ]
    ),
    "bid": pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            *(pa.field(name, pa.int64()) for name in ("auction", "bidder", "price")),
            *(pa.field(name, pa.string()) for name in ("channel", "url")),
            pa.field("created", pa.int64()),
        ]
    ),
}
ROUND = 50
"""Events after which the kinds repeat."""
_AUCTIONS, _BIDS = 3, 46
_STATES = ("OR", "ID", "CA", "WA", "NY", "WY")
_CITIES = ("Portland", "Boise", "San Francisco", "Seattle", "Kent", "Cheyenne")
_CHANNELS = ("Apple", "Google", "Facebook", "Baidu", "channel-5", "channel-6")
_RECENT_AUCTIONS, _RECENT_PERSONS = 100, 1000
_OPEN_MILLIS = 20_000
_CHANGED, _DELETED, _BIDS_DELETED = 10, 50, 100
_FIRST_CATEGORY, _CATEGORIES = 10, 5

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def events(first_round: int, rounds: int, created: Numbers) -> dict[str, pa.Table]:
    """Return the changes of each table in some rounds of events, with ``_row_kind``.

    ``created`` are the times of all ``rounds * ROUND`` events. A key occurs once in a result.
    """
    chance = np.random.default_rng([23, first_round])
    times = created.reshape(rounds, ROUND)
    persons = np.arange(first_round, first_round + rounds)
    auctions = np.arange(first_round * _AUCTIONS, (first_round + rounds) * _AUCTIONS)
    bids = np.arange(first_round * _BIDS, (first_round + rounds) * _BIDS)
    return {
        "person": _inserted("person", _persons(chance, persons, times[:, 0])),
        "auction": _auctions(chance, auctions, times[:, 1 : 1 + _AUCTIONS].ravel()),
        "bid": _bids(chance, bids, times[:, 1 + _AUCTIONS :].ravel()),
    }


def _persons(chance: np.random.Generator, ids: Numbers, created: Numbers) -> dict[str, Any]:
    place = chance.integers(0, len(_STATES), len(ids))
    name = np.char.add("person ", ids.astype(str))
    return {
        "id": ids,
        "name": name,
        "email": np.char.add(name, "@example.com"),
        "city": np.array(_CITIES)[place],
        "state": np.array(_STATES)[place],
        "created": created,
    }


def _auctions(chance: np.random.Generator, ids: Numbers, created: Numbers) -> pa.Table:
    # Changed and deleted auctions are recent ones from before this batch; their other columns stay the same.
    earlier = np.arange(max(0, ids[0] - _RECENT_AUCTIONS), ids[0])
    changed = earlier[chance.random(len(earlier)) < len(ids) / (_CHANGED * _RECENT_AUCTIONS)]
    deleted = earlier[chance.random(len(earlier)) < len(ids) / (_DELETED * _RECENT_AUCTIONS)]
    changed = np.setdiff1d(changed, deleted)
    new = _inserted("auction", _auction(ids, created, added=0))
    updated = _inserted("auction", _auction(changed, np.full(len(changed), created[0]), added=1 + int(ids[0]) % 7))
    return pa.concat_tables([new, updated, _deleted("auction", deleted)])


def _auction(ids: Numbers, created: Numbers, *, added: int) -> dict[str, Any]:
    initial = ids * 7919 % 100_000
    return {
        "id": ids,
        "item_name": np.char.add("item ", ids.astype(str)),
        "initial_bid": initial,
        "reserve": initial + 1000 * (1 + added),
        "created": created,
        "expires": created + _OPEN_MILLIS,
        "seller": np.maximum(0, ids // _AUCTIONS - ids * 104_729 % _RECENT_PERSONS),
        "category": _FIRST_CATEGORY + ids % _CATEGORIES,
    }


def _bids(chance: np.random.Generator, ids: Numbers, created: Numbers) -> pa.Table:
    rounds = ids // _BIDS
    channel = chance.integers(0, len(_CHANNELS), len(ids))
    numbers = ids % 997
    urls = np.char.add(np.char.add("https://www.nexmark.com/item", numbers.astype(str)), "/aaaa/bcc/item.htm?query=1")
    urls = np.where(numbers % 2 == 0, np.char.add(np.char.add(urls, "&channel_id="), numbers.astype(str)), urls)
    new = {
        "id": ids,
        "auction": np.maximum(0, rounds * _AUCTIONS - chance.integers(0, _RECENT_AUCTIONS, len(ids))),
        "bidder": np.maximum(0, rounds - chance.integers(0, _RECENT_PERSONS, len(ids))),
        # Prices spread over six powers of ten.
        "price": np.floor(10 ** (chance.random(len(ids)) * 6) * 100).astype(np.int64),
        "channel": np.array(_CHANNELS)[channel],
        "url": urls,
        "created": created,
    }
    earlier = np.arange(max(0, ids[0] - len(ids)), ids[0])
    deleted = earlier[chance.random(len(earlier)) < 1 / _BIDS_DELETED]
    return pa.concat_tables([_inserted("bid", new), _deleted("bid", deleted)])


def _inserted(table: str, columns: dict[str, Any]) -> pa.Table:
    rows = pa.table(columns).cast(COLUMNS[table])
    return rows.append_column("_row_kind", pa.array(["+U"] * rows.num_rows, pa.string()))


def _deleted(table: str, ids: Numbers) -> pa.Table:
    nothing = {field.name: pa.nulls(len(ids), field.type) for field in COLUMNS[table] if field.name != "id"}
    rows = pa.table({"id": pa.array(ids, pa.int64()), **nothing}, schema=COLUMNS[table])
    return rows.append_column("_row_kind", pa.array(["-D"] * len(ids), pa.string()))
