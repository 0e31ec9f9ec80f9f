"""Tables of TPC-H with their primary keys, and the text of its queries."""

from __future__ import annotations

from pathlib import Path

KEYS: dict[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "part": ("p_partkey",),
    "customer": ("c_custkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
_QUERIES = Path(__file__).parent / "queries"


def queries(scale: float) -> dict[str, str]:
    """Return the 22 queries by name, with the specification's validation parameters for a scale factor."""
    texts = {path.stem.upper(): path.read_text() for path in sorted(_QUERIES.glob("q*.sql"))}
    return {name: text.replace("{fraction}", f"{0.0001 / scale:.10f}") for name, text in texts.items()}
