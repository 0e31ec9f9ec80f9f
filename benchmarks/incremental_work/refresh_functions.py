"""TPC-H's refresh functions: RF1 inserts new orders with their lines, RF2 deletes old ones.

Values have the distributions of the specification (4.2.3), which are the same as those of the loaded rows. As in its
generator, new orders have keys that the loaded ones leave out, in ascending order, and RF2 deletes the loaded orders of
the same places; so no pair touches the orders of another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SHARE = 1000
"""RF1 inserts, and RF2 deletes, one order for this many loaded ones: 0.1 %."""
_FIRST_DAY = np.datetime64("1992-01-01")
_LAST_DAY = np.datetime64("1998-08-02")
_TODAY = np.datetime64("1995-06-17")
_MAX_LINES = 7
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_WORDS = (
    *("carefully", "quickly", "special", "pending", "express", "regular", "final", "ironic"),
    *("requests", "deposits", "packages", "accounts", "foxes", "theodolites", "instructions"),
)
_WORDS_IN_COMMENT = 4

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class NewOrders:
    """Rows of ``orders`` and ``lineitem`` that RF1 inserts."""

    orders: pa.Table
    lineitem: pa.Table


class RefreshFunctions:
    """Makes the refresh pairs of a loaded data set; the same for the same data."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        """``tables`` are the loaded rows of orders, lineitem, customer, part and partsupp."""
        self._schemas = {name: tables[name].schema for name in ("orders", "lineitem")}
        self._keys = np.sort(tables["orders"]["o_orderkey"].to_numpy())
        customers = tables["customer"]["c_custkey"].to_numpy()
        # A third of the customers have no order.
        self._customers = customers[customers % 3 != 0]
        self._parts = tables["part"].select(["p_partkey", "p_retailprice"])
        offers = tables["partsupp"].select(["ps_partkey", "ps_suppkey"])
        self._offers = (offers["ps_partkey"].to_numpy(), offers["ps_suppkey"].to_numpy())
        self.orders_in_pair = max(1, len(self._keys) // _SHARE)

    def new_orders(self, pair: int) -> NewOrders:
        """Return the rows that RF1 of the ``pair``-th pair (from 0) inserts."""
        count = self.orders_in_pair
        chance = np.random.default_rng([_SHARE, pair])
        # Keys go up to a multiple of the number of orders, because three of four are left out.
        candidates = np.arange(1, int(self._keys[-1]) + 1 + (pair + 1) * count)
        keys = np.setdiff1d(candidates, self._keys, assume_unique=True)[pair * count : (pair + 1) * count]
        days = _FIRST_DAY + chance.integers(0, int((_LAST_DAY - _FIRST_DAY).astype(int)) + 1, count)
        lines = self._lines(chance, keys, days)
        per_order = np.unique(lines["of_order"], return_inverse=True)[1]
        is_open = lines["l_linestatus"] == "O"
        open_lines = np.bincount(per_order, weights=is_open)
        all_lines = np.bincount(per_order)
        status = np.where(open_lines == 0, "F", np.where(open_lines == all_lines, "O", "P"))
        charged = lines["cents"] * (100 - lines["discount"]) // 100 * (100 + lines["tax"]) // 100
        total = np.bincount(per_order, weights=charged).astype(np.int64)
        orders = {
            "o_orderkey": keys,
            "o_custkey": chance.choice(self._customers, count),
            "o_orderstatus": status,
            "o_totalprice": _decimals(total),
            "o_orderdate": days,
            "o_orderpriority": chance.choice(_PRIORITIES, count),
            "o_clerk": np.char.add("Clerk#", np.char.zfill(chance.integers(1, 1001, count).astype(str), 9)),
            "o_shippriority": np.zeros(count, np.int32),
            "o_comment": _comments(chance, count),
        }
        return NewOrders(
            pa.table(orders).cast(self._schemas["orders"]),
            pa.table({name: lines[name] for name in self._schemas["lineitem"].names}).cast(self._schemas["lineitem"]),
        )

    def deleted_keys(self, pair: int) -> pa.Array:
        """Return the keys of the loaded orders that RF2 of a pair deletes with their lines."""
        count = self.orders_in_pair
        return pa.array(self._keys[pair * count : (pair + 1) * count])

    def _lines(self, chance: np.random.Generator, keys: Numbers, days: Numbers) -> dict[str, Any]:
        per_order = chance.integers(1, _MAX_LINES + 1, len(keys))
        of_order = np.repeat(np.arange(len(keys)), per_order)
        count = len(of_order)
        first = np.repeat(np.cumsum(per_order) - per_order, per_order)
        offers = chance.integers(0, len(self._offers[0]), count)
        part_keys, suppliers = self._offers[0][offers], self._offers[1][offers]
        places = pc.index_in(pa.array(part_keys), self._parts["p_partkey"].combine_chunks())
        prices = self._parts["p_retailprice"].take(places)
        cents = pc.multiply(prices, pa.scalar(100, pa.int64())).cast(pa.int64()).to_numpy()
        quantity = chance.integers(1, 51, count)
        discount, tax = chance.integers(0, 11, count), chance.integers(0, 9, count)
        ordered = days[of_order]
        shipped = ordered + chance.integers(1, 122, count)
        received = shipped + chance.integers(1, 31, count)
        returned = np.where(received <= _TODAY, chance.choice(["R", "A"], count), "N")
        return {
            "of_order": of_order,
            "cents": cents * quantity,
            "discount": discount,
            "tax": tax,
            "l_orderkey": keys[of_order],
            "l_partkey": part_keys,
            "l_suppkey": suppliers,
            "l_linenumber": (np.arange(count) - first + 1).astype(np.int32),
            "l_quantity": _decimals(quantity * 100),
            "l_extendedprice": _decimals(cents * quantity),
            "l_discount": _decimals(discount),
            "l_tax": _decimals(tax),
            "l_returnflag": returned,
            "l_linestatus": np.where(shipped > _TODAY, "O", "F"),
            "l_shipdate": shipped,
            "l_commitdate": ordered + chance.integers(30, 91, count),
            "l_receiptdate": received,
            "l_shipinstruct": chance.choice(_INSTRUCTIONS, count),
            "l_shipmode": chance.choice(_MODES, count),
            "l_comment": _comments(chance, count),
        }


def _decimals(hundredths: Numbers) -> pa.Array:
    """Return hundredths as DECIMAL(15, 2)."""
    whole = pa.array(hundredths.astype(np.int64)).cast(pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(15, 2))


def _comments(chance: np.random.Generator, count: int) -> Numbers:
    text = chance.choice(_WORDS, count)
    for _ in range(_WORDS_IN_COMMENT - 1):
        text = np.char.add(np.char.add(text, " "), chance.choice(_WORDS, count))
    return text
