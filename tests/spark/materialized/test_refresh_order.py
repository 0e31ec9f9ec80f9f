"""Tables are refreshed after the tables that they read."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from storage_lib import InvalidInputError
from storage_lib.materialized.sources.refresh_order import refresh_order


def test_a_table_comes_after_the_tables_that_it_reads() -> None:
    order = refresh_order({"s.d": ["s.b", "s.c"], "s.c": ["s.a"], "s.b": ["s.a", "s.plain"], "s.a": ["s.plain"]})

    assert order[0] == "s.a"
    assert order[-1] == "s.d"
    assert sorted(order) == ["s.a", "s.b", "s.c", "s.d"]


def test_a_circle_is_an_error_that_names_it() -> None:
    with pytest.raises(InvalidInputError, match=r"in a circle: (s\.a -> s\.b -> s\.a|s\.b -> s\.a -> s\.b)"):
        refresh_order({"s.a": ["s.b"], "s.b": ["s.a"]})
