"""Which topics a sync reads, which table each becomes, and which rules are refused."""

from __future__ import annotations

from typing import Any

import pytest

from storage_lib import InvalidInputError, NotFoundError
from storage_lib.sync.topic_rules import TopicRules

TOPICS = ["__consumer_offsets", "shop.public.items", "shop.public.orders_1", "shop.public.orders_2", "shop.sales.items"]


def rules(*topics: str, **more: Any) -> TopicRules:
    return TopicRules(topics=topics, into="lake", **more)


@pytest.mark.parametrize(
    ("given", "tables"),
    [
        (rules("shop.public.items"), {"lake.items": ("shop.public.items",)}),
        (
            rules("shop.public.*", prefix="raw_", suffix="_v1", exclude=("*_2",)),
            {"lake.raw_items_v1": ("shop.public.items",), "lake.raw_orders_1_v1": ("shop.public.orders_1",)},
        ),
        (
            rules("*orders_?", rename={r"orders_\d+": "orders"}, merge_shards=True),
            {"lake.orders": ("shop.public.orders_1", "shop.public.orders_2")},
        ),
        (rules("*orders_1", rename={r"(\w+)_(\d)": r"n\2_\1"}), {"lake.n1_orders": ("shop.public.orders_1",)}),
        # An expression has to match the whole part, and the first that does counts.
        (rules("*sales*", rename={"item": "a", "items": "b", ".*": "c"}), {"lake.b": ("shop.sales.items",)}),
    ],
)
def test_topics_become_tables(given: TopicRules, tables: dict[str, tuple[str, ...]]) -> None:
    assert given.chosen(TOPICS, {}) == tables


def test_no_expression_takes_longer_than_the_name() -> None:
    """Forms contain expressions; Python's own matching of this one would take years."""
    topic = "shop." + "a" * 200 + "_"

    assert rules("*", rename={"(a+)+": "b"}).table_of(topic) == f"lake.{'a' * 200}_"
    assert rules("*", rename={r"(?P<all>(a+)+)_": r"\g<all>x"}).table_of(topic) == f"lake.{'a' * 200}x"


def test_topics_that_give_the_same_table_are_refused_unless_they_are_shards() -> None:
    with pytest.raises(InvalidInputError, match=r"'shop.public.items' and 'shop.sales.items' both become .*lake.items"):
        rules("*items").chosen(TOPICS, {})


def test_a_pattern_that_matches_nothing_names_what_there_is() -> None:
    with pytest.raises(NotFoundError, match=r"no topic matches shops\.\*; Kafka has shop.public.items, .*sales.items$"):
        rules("shops.*").chosen(TOPICS, {})


def test_the_log_of_a_table_is_not_read() -> None:
    logs = {"shop.public.items": "lake.items"}

    assert list(rules("shop.public.*").chosen(TOPICS, logs)) == ["lake.orders_1", "lake.orders_2"]
    with pytest.raises(NotFoundError, match=r"only logs of tables match, such as that of lake.items"):
        rules("shop.public.items").chosen(TOPICS, logs)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"rename": {"(": "a"}}, r"'\(' is not a regular expression"),
        ({"rename": {r"(a)\1": "a"}}, r"'\(a\)\\\\1' is not a regular expression of RE2's syntax"),
        ({"prefix": "a.b"}, "invalid table name 'lake.a.bt'"),
    ],
)
def test_rules_that_can_not_be_followed_are_refused_at_once(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        rules("*", **more)


@pytest.mark.parametrize(
    ("rename", "problem"),
    [({"items": r"\1"}, "does not fit 'items'"), ({"items": "a b"}, "would become table 'lake.a b'")],
)
def test_a_name_that_is_none_is_refused(rename: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        rules("shop.public.items", rename=rename).chosen(TOPICS, {})
