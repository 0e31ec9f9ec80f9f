"""A few hundred rows in TPC-H's tables, drawn around its queries' constants, so that most of them have answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = ("KENYA", "BRAZIL", "CHINA", "GERMANY", "SAUDI ARABIA", "EGYPT", "CANADA", "INDIA", "FRANCE", "IRAN")
_SUPPLIERS, _PARTS, _CUSTOMERS, _ORDERS = 20, 40, 40, 400
_MONEY = pa.decimal128(15, 2)


def write_tiny_tpch(directory: Path, seed: int = 7) -> None:
    """Write ``<table>.parquet`` for each table of TPC-H."""
    random = Random(seed)  # noqa: S311  not for cryptography
    orders, lines = _orders_and_lines(random)
    tables = {
        "region": _table("r_regionkey:long r_name r_comment", [(i, name, "") for i, name in enumerate(_REGIONS)]),
        "nation": _table(
            "n_nationkey:long n_name n_regionkey:long n_comment",
            [(i, name, i % len(_REGIONS), "") for i, name in enumerate(_NATIONS)],
        ),
        "supplier": _table(
            "s_suppkey:long s_name s_address s_nationkey:long s_phone s_acctbal:money s_comment",
            [
                (i, f"Supplier#{i}", f"street {i}", i % len(_NATIONS), "27-1", _money(random), comment)
                for i in range(_SUPPLIERS)
                for comment in ["bad Customer many Complaints" if i == 3 else "fine"]
            ],
        ),
        "part": _parts(random),
        "partsupp": _table(
            "ps_partkey:long ps_suppkey:long ps_availqty:int ps_supplycost:money ps_comment",
            [
                (part, (part + 5 * each) % _SUPPLIERS, random.randrange(1, 9999), _money(random), "")
                for part in range(_PARTS)
                for each in range(4)
            ],
        ),
        "customer": _table(
            "c_custkey:long c_name c_address c_nationkey:long c_phone c_acctbal:money c_mktsegment c_comment",
            [
                (
                    i,
                    f"Customer#{i}",
                    "",
                    i % len(_NATIONS),
                    f"{random.choice((13, 31, 50))}-1",
                    _money(random),
                    sector,
                    "",
                )
                for i in range(_CUSTOMERS)
                for sector in [random.choice(("BUILDING", "MACHINERY"))]
            ],
        ),
        "orders": orders,
        "lineitem": lines,
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, directory / f"{name}.parquet")


def _parts(random: Random) -> pa.Table:
    names = ("forest green", "green misty", "blue")
    kinds = ("LARGE BRASS", "ECONOMY ANODIZED STEEL", "PROMO TIN")
    brands = (("Brand#12", "SM BOX"), ("Brand#23", "MED BOX"), ("Brand#34", "LG BOX"))
    rows = [
        (i, random.choice(names), "maker", brand, random.choice(kinds), size, container, _money(random), "")
        for i in range(_PARTS)
        for brand, container in [random.choice(brands)]
        for size in [random.choice((3, 5, 15))]
    ]
    return _table(
        "p_partkey:long p_name p_mfgr p_brand p_type p_size:int p_container p_retailprice:money p_comment", rows
    )


def _orders_and_lines(random: Random) -> tuple[pa.Table, pa.Table]:
    orders: list[tuple[object, ...]] = []
    lines: list[tuple[object, ...]] = []
    for key in range(_ORDERS):
        day = date(1993, 1, 1) + timedelta(days=random.randrange(5 * 365))
        # A third of the customers have no order.
        customer = random.randrange(_CUSTOMERS) // 3 * 3
        urgency, comment = random.choice(("1-URGENT", "3-MEDIUM")), random.choice(("special deposit requests", ""))
        orders.append((key, customer, random.choice("FO"), _money(random), day, urgency, "", 0, comment))
        for number in range(random.randrange(1, 8)):
            part = random.randrange(_PARTS)
            supplier = (part + 5 * random.randrange(4)) % _SUPPLIERS
            quantity, discount = Decimal(random.choice((5, 15, 25, 50, 50))), Decimal(random.randrange(11)) / 100
            amounts = (quantity, _money(random), discount, Decimal("0.04"))
            shipped, promised, received = (day + timedelta(days=random.randrange(1, 60)) for _ in range(3))
            how = ("DELIVER IN PERSON", random.choice(("AIR", "MAIL", "SHIP")), "")
            status = (random.choice("RAN"), random.choice("OF"))
            lines.append((key, part, supplier, number, *amounts, *status, shipped, promised, received, *how))
    of_orders = (
        "o_orderkey:long o_custkey:long o_orderstatus o_totalprice:money o_orderdate:date o_orderpriority o_clerk "
        "o_shippriority:int o_comment"
    )
    of_lines = (
        "l_orderkey:long l_partkey:long l_suppkey:long l_linenumber:int l_quantity:money l_extendedprice:money "
        "l_discount:money l_tax:money l_returnflag l_linestatus l_shipdate:date l_commitdate:date l_receiptdate:date "
        "l_shipinstruct l_shipmode l_comment"
    )
    return _table(of_orders, orders), _table(of_lines, lines)


def _table(columns: str, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """Return a table; a column is text unless a type follows its name."""
    types = {"long": pa.int64(), "int": pa.int32(), "money": _MONEY, "date": pa.date32(), "": pa.string()}
    named = [column.partition(":") for column in columns.split()]
    schema = pa.schema([pa.field(name, types[kind], nullable=False) for name, _, kind in named])
    values = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(values, schema=schema)


def _money(random: Random) -> Decimal:
    return Decimal(random.randrange(100, 999_999)) / 100
