"""Declared syncs become the arguments of operators, or an error with file, sync, key and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynamic_table.declarations.stream_declarations import read_streams
from dynamic_table.declarations.sync_declarations import CHECKS, read_syncs
from dynamic_table.declarations.table_declarations import read_declarations
from dynamic_table.operators.read_sync_declarations import ReadSyncsOperator
from dynamic_table.operators.run_sync import SyncDatabaseOperator
from storage_lib import InvalidInputError
from tests.support.task_context import task_context

SHOP = """
syncs:
  shop:
    topics: shop.public.*
    into: shop
    exclude: ["*.audit"]
    rename: {"orders_[0-9]+": orders}
    merge_shards: true
    options: {source.on-reject: quarantine, source.reject-max: 100/h}
    table_options: {bucket: 4}
    workers: 2
    expectations: {shop.orders: orders.yaml}
"""
TABLE = "tables: {a.b: {columns: {id: INT}}}"


def written(folder: Path, text: str) -> Path:
    path = folder / "tables.yaml"
    path.write_text(text)
    return path


def test_each_sync_becomes_the_arguments_of_an_operator(tmp_path: Path) -> None:
    written(tmp_path, SHOP + "  crm: {topics: [crm.a.*, crm.b.*], into: crm, prefix: raw_}\n" + TABLE)

    shop, crm = read_syncs("tables.yaml", tmp_path)

    assert shop == {
        "topics": "shop.public.*",
        "into": "shop",
        "exclude": ["*.audit"],
        "rename": {"orders_[0-9]+": "orders"},
        "merge_shards": True,
        "options": {"source.on-reject": "quarantine", "source.reject-max": "100/h"},
        "table_options": {"bucket": 4},
        "workers": 2,
        "expectations": {"shop.orders": "orders.yaml"},
    }
    assert crm == {"topics": ["crm.a.*", "crm.b.*"], "into": "crm", "prefix": "raw_"}
    for number, arguments in enumerate((shop, crm)):
        assert SyncDatabaseOperator(task_id=f"sync-{number}", **arguments).into == arguments["into"]


def test_every_key_is_a_templated_argument_of_the_operator() -> None:
    assert set(CHECKS) == set(SyncDatabaseOperator.template_fields)


def test_a_file_may_declare_only_tables_or_only_syncs(tmp_path: Path) -> None:
    written(tmp_path, TABLE)
    assert (len(read_declarations("tables.yaml", tmp_path)), read_syncs("tables.yaml", tmp_path)) == (1, [])

    written(tmp_path, SHOP)
    assert (read_declarations("tables.yaml", tmp_path), read_streams("tables.yaml", tmp_path)) == ([], [])
    assert len(read_syncs("tables.yaml", tmp_path)) == 1


def test_a_task_returns_the_arguments_of_a_file(tmp_path: Path) -> None:
    task = ReadSyncsOperator(task_id="read_syncs", source=str(written(tmp_path, SHOP)))

    assert [each["into"] for each in task.execute(task_context(task))] == ["shop"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("syncs: {}", "declares no tables"),
        ("syncs: [shop]", "has syncs that are ['shop']"),
        ("syncs: {shop: shop.public.*}", "sync shop is 'shop.public.*'; it has to be a mapping"),
        ("syncs: {shop: {topics: shop.*}}", "with at least topics and into"),
        ("syncs: {shop: {topics: shop.*, into: shop, schedule: daily}}", "sync shop has the unknown key 'schedule'"),
        ("syncs: {shop: {topics: [on], into: shop}}", "sync shop: topics"),
        ("syncs: {shop: {topics: shop.*, into: shop, workers: 0}}", "sync shop: workers"),
        ("syncs: {shop: {topics: shop.*, into: shop, merge_shards: maybe}}", "sync shop: merge_shards"),
        (
            "syncs: {shop: {topics: shop.*, into: shop, options: {log.kafka.sasl.plain.password: x}}}",
            "sync shop: option log.kafka.sasl.plain.password is a secret",
        ),
        (
            "syncs:\n  shop: {topics: a.*, into: a}\n  shop: {topics: b.*, into: b}",
            "line 3: duplicate key 'shop'",
        ),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)

    with pytest.raises(InvalidInputError, match=re.escape(words)) as refused:
        read_syncs("tables.yaml", tmp_path)
    assert str(path) in str(refused.value)
