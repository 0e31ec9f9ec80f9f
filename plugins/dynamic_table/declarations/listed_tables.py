"""The list of materialized tables that DAG files read: an Airflow variable, which a task copies from the catalog.

A DAG file is parsed every half minute, on the machine of the DAG processor. So parsing reads the variable only: it
takes milliseconds, needs no access to the catalog, and finds the last list if the catalog is down.

    {"s.daily": {"sources": ["s.orders"], "freshness_seconds": 300, "is_suspended": false, "is_downstream": false}}
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamic_table.hook import DynamicTableHook
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition

__all__ = ["LIST_VARIABLE", "ListedTable", "materialized_tables", "read_list", "write_list"]

LIST_VARIABLE = "dynamic_tables_materialized"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListedTable:
    """Entry of a materialized table in the list.

    ``sources`` are the tables that its query reads, ``freshness_seconds`` the longest time that it may lag behind them;
    None: no limit. ``is_downstream``: it has TARGET_LAG = DOWNSTREAM, so refreshes of its readers refresh it first.
    ``reads_catalogs``: its query also reads tables of Delta Lake or Iceberg, which emit no asset events.
    """

    sources: tuple[str, ...]
    freshness_seconds: int | None = None
    is_suspended: bool = False
    is_downstream: bool = False
    reads_catalogs: bool = False


def materialized_tables(
    hook: DynamicTableHook, known: Mapping[str, ListedTable]
) -> tuple[dict[str, ListedTable], dict[str, str]]:
    """Return the materialized tables of a catalog by ``database.table``, and the errors of tables that can't be read.

    A table that can't be read keeps its entry in ``known``, if it has one, so that its DAG does not disappear. Tables
    that are dropped meanwhile are left out. Raises StorageError if the catalog can't be listed.
    """
    from storage_lib.errors import NotFoundError, StorageError

    catalog = hook.get_conn()
    found: dict[str, ListedTable] = {}
    errors: dict[str, str] = {}
    for name in sorted(hook.list_tables()):
        try:
            definition = catalog.load_table(name).definition
        except NotFoundError:
            continue
        except StorageError as error:
            errors[name] = f"{type(error).__name__}: {error}"
            if name in known:
                found[name] = known[name]
            continue
        if definition is not None:
            found[name] = _entry(definition)
    return found, errors


def _entry(definition: MaterializedTableDefinition) -> ListedTable:
    from storage_lib.schema.options.materialized_table import RefreshStatus, TargetLag

    freshness = definition.freshness
    return ListedTable(
        sources=definition.sources,
        freshness_seconds=None if isinstance(freshness, TargetLag | None) else round(freshness.total_seconds()),
        is_suspended=definition.status is RefreshStatus.SUSPENDED,
        is_downstream=isinstance(freshness, TargetLag),
        reads_catalogs=bool(definition.catalogs),
    )


def read_list(variable: str = LIST_VARIABLE) -> dict[str, ListedTable]:
    """Return the list in a variable; empty if the variable does not exist or holds something else."""
    text = Variable.get(variable, default=None)
    if text is None:
        return {}
    try:
        return {name: _listed(each) for name, each in json.loads(text).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The next run of the listing task replaces it.
        _log.error("Variable %s is not a list of materialized tables: %s", variable, error)
        return {}


def write_list(tables: Mapping[str, ListedTable], variable: str = LIST_VARIABLE) -> bool:
    """Store the list in a variable; return whether it differs from the stored one."""
    text = json.dumps({name: asdict(each) for name, each in sorted(tables.items())})
    if Variable.get(variable, default=None) == text:
        return False
    Variable.set(variable, text, description="Materialized tables, as of the last run of their list")
    return True


def _listed(stored: Mapping[str, Any]) -> ListedTable:
    freshness = stored["freshness_seconds"]
    return ListedTable(
        sources=tuple(map(str, stored["sources"])),
        freshness_seconds=None if freshness is None else int(freshness),
        is_suspended=bool(stored["is_suspended"]),
        is_downstream=bool(stored.get("is_downstream", False)),  # lists of older versions lack it, and the next one
        reads_catalogs=bool(stored.get("reads_catalogs", False)),
    )
