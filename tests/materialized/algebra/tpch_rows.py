"""Random rows of TPC-H's tables, from few values, so that small tables answer every query with some rows."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

from storage_lib.materialized.algebra import SourceTable

Row = tuple[Any, ...]
_MONEY = "DECIMAL(15,2)"
_COLUMNS = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING,"
    " s_acctbal MONEY, s_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,"
    " p_container STRING, p_retailprice MONEY, p_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING,"
    " c_acctbal MONEY, c_mktsegment STRING, c_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost MONEY, ps_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice MONEY, o_orderdate DATE,"
    " o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_linenumber INT, l_partkey BIGINT, l_suppkey BIGINT, l_quantity MONEY,"
    " l_extendedprice MONEY, l_discount MONEY, l_tax MONEY, l_returnflag STRING, l_linestatus STRING, l_shipdate DATE,"
    " l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING",
}
KEY_WIDTH = {name: 2 if name in ("partsupp", "lineitem") else 1 for name in _COLUMNS}
_COUNTS = {
    "region": 3,
    "nation": 6,
    "supplier": 12,
    "part": 9,
    "customer": 40,
    "partsupp": 60,
    "orders": 60,
    "lineitem": 400,
}


def _table(name: str) -> SourceTable:
    columns = []
    for text in _COLUMNS[name].split(", "):
        column, kind = text.split(" ")
        columns.append((column, kind.replace("MONEY", _MONEY)))
    return SourceTable(f"tpch.{name}", tuple(columns), tuple(column for column, _ in columns[: KEY_WIDTH[name]]))


TABLES = tuple(_table(name) for name in _COLUMNS)


class TpchRows:
    """Makes rows with seeded chance."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def first(self, table: str) -> dict[Row, Row]:
        """Return the rows that a table begins with, by their keys."""
        return dict(self.keyed(table) for _ in range(_COUNTS[table] * (4 if KEY_WIDTH[table] == 1 else 1)))

    def keyed(self, table: str) -> tuple[Row, Row]:
        """Return a new row of a table, after its key."""
        row: Row = getattr(self, f"_{table}")()
        return row[: KEY_WIDTH[table]], row

    def _key(self, table: str) -> int:
        return self._rng.randrange(_COUNTS[table])

    def _of(self, *values: Any) -> Any:
        return self._rng.choice(values)

    def _money(self, top: int) -> float:
        return self._rng.randrange(top * 100) / 100

    def _day(self) -> dt.date:
        year, month = self._of(1993, 1994, 1995, 1996), self._of(1, 2, 9, 10)
        return dt.date(year, month, self._rng.randint(1, 28))

    def _region(self) -> Row:
        key = self._key("region")
        return key, ("EUROPE", "ASIA", "AMERICA")[key], "r"

    def _nation(self) -> Row:
        key = self._key("nation")
        name = ("GERMANY", "FRANCE", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA")[key]
        return key, name, self._key("region"), "n"

    def _supplier(self) -> Row:
        key = self._key("supplier")
        comment = self._of("fine", "Customer said Complaints")
        return key, f"s{key}", f"a{key}", self._key("nation"), self._of("13-1", "31-2"), self._money(900), comment

    def _part(self) -> Row:
        brand, container = self._of(("Brand#12", "SM CASE"), ("Brand#23", "MED BOX"), ("Brand#34", "LG BOX"))
        kind = self._of("ECONOMY ANODIZED STEEL", "SMALL BRASS", "PROMO BRASS", "MEDIUM POLISHED TIN")
        name = self._of("forest green", "blue green", "red")
        return self._key("part"), name, "m", brand, kind, self._of(3, 9, 14, 15), container, self._money(90), "p"

    def _customer(self) -> Row:
        key, phone = self._key("customer"), self._of("13-5", "31-6", "99-7")
        balance, segment = self._money(900) - 100, self._of("BUILDING", "AUTOMOBILE")
        return key, f"c{key}", f"a{key}", self._key("nation"), phone, balance, segment, "c"

    def _partsupp(self) -> Row:
        return self._key("part"), self._key("supplier"), self._rng.randrange(999), self._money(50), "ps"

    def _orders(self) -> Row:
        comment, priority = self._of("fine", "special packages requests"), self._of("1-URGENT", "2-HIGH", "5-LOW")
        key, customer = self._key("orders"), self._key("customer")
        return key, customer, self._of("F", "O"), self._money(900), self._day(), priority, "k", 0, comment

    def _lineitem(self) -> Row:
        key = (self._key("orders"), self._rng.randint(1, 12), self._key("part"), self._key("supplier"))
        numbers = (float(self._rng.randint(1, 50)), self._money(900), self._of(0.05, 0.06, 0.1), self._of(0.0, 0.02))
        days = (self._day(), self._day(), self._day())
        ways = (self._of("DELIVER IN PERSON", "NONE"), self._of("AIR", "MAIL", "SHIP"))
        return (*key, *numbers, self._of("R", "N"), self._of("F", "O"), *days, *ways, "l")
