"""State belongs to its object: no code sets an attribute of another object."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SETTERS = ("setattr", "delattr", "object.__setattr__")
ROOT = Path(__file__).parent.parent
OF_OTHER_LIBRARIES = {
    "storage_lib/catalog/hive/hive_entries.py": {"dbName", "tableName", "locationUri", "parameters"},
    "storage_lib/catalog/hive/hive_table.py": {
        *("partitionKeys", "cols", "inputFormat", "outputFormat", "serdeInfo", "sd", "parameters", "location"),
    },
    "storage_lib/cli/app.py": {"obj"},
    "storage_lib/errors.py": {"committed"},
    "storage_lib/format/parquet_format.py": {"_metadata_collector"},
    "storage_lib/hive/hive_columns.py": {"cols"},
    "storage_lib/iceberg/register/hive_registration.py": {"cols", "name", "parameters"},
    "storage_lib/log_store/kafka/kafka_connections.py": {"_sock_recv"},
    "storage_lib/progress/rich_bar.py": {"start_time"},
    "storage_lib/serve/requests/served.py": {"served"},
    "storage_lib/spark/data_source/table_source.py": {"format", "knows_dynamic_tables"},
    "storage_lib/sql/state/spark_words.py": {"disabled"},
    "plugins/dynamic_table/policies/pool_policy.py": {"is_noop", "pool"},
    "plugins/dynamic_table/versions/own_retry_policy.py": {"execute"},
    "plugins/dynamic_table/versions/requests_of_threads.py": {"send"},
    "plugins/dynamic_table/quality/data_quality.py": {"progress_bars"},
    "plugins/dynamic_table/sinks/sink_job.py": {"returncode"},
}
"""Attributes of other libraries' objects that are meant to be set, or cannot be set otherwise."""


def attributes_set(source: str) -> set[str]:
    """Return the attributes that are set or deleted on any object but ``self``."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                found.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in SETTERS and ast.unparse(node.args[0]) != "self":
            found.add(ast.unparse(node.args[1]))
    return found


@pytest.mark.parametrize("folder", ["storage_lib", "plugins", "dags"])
def test_no_object_sets_an_attribute_of_another(folder: str) -> None:
    modules = sorted((ROOT / folder).rglob("*.py"))
    found = {str(each.relative_to(ROOT)): attributes_set(each.read_text()) for each in modules}

    assert modules
    assert {name: names for name, names in found.items() if names} == {
        name: names for name, names in OF_OTHER_LIBRARIES.items() if name.startswith(f"{folder}/")
    }


@pytest.mark.parametrize(
    "statement",
    ["b.x = 1", "self.b.x = 1", "b.x += 1", "b.x, y = 1, 2", "del b.x", "setattr(b, 'x', 1)", "for b.x in y: pass"],
)
def test_every_way_to_set_one_is_seen(statement: str) -> None:
    assert attributes_set(statement) in ({"x"}, {"'x'"})


def test_an_objects_own_attributes_are_its_own() -> None:
    assert attributes_set("self.x = 1; object.__setattr__(self, 'x', 1); x = b.y") == set()
