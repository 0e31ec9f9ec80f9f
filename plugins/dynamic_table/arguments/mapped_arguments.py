"""Arguments that mapped tasks take from the result of another task: ``expand_kwargs(listed.map(of_stream))``.

Airflow's role User may change results (XComs). So a mapped task admits only arguments that a form may also give: the
command of a sink, a connection or a directory come from the DAG alone. The functions run where the task runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["CHECKS_OF_MAPPED", "keeps_tables", "of_compaction", "of_stream", "of_sync", "of_table"]

STREAM = frozenset(
    {
        *("table", "source", "select", "expectations", "trigger_seconds", "max_rows_per_trigger"),
        *("write_options", "master", "spark_conf"),
    }
)
SYNC = frozenset(
    {
        *("topics", "into", "format", "exclude", "prefix", "suffix", "rename", "merge_shards"),
        *("options", "table_options", "workers", "expectations"),
    }
)
TABLE = frozenset({"table", "columns", "primary_key", "partition_by", "options", "comment", "table_pool_slots"})
COMPACTION = frozenset({"table", "buckets"})


def of_stream(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a ``StreamSinkOperator``; ``InvalidInputError`` for others."""
    return _admitted(arguments, STREAM)


def of_sync(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a ``SyncDatabaseOperator``; ``InvalidInputError`` for others."""
    return _admitted(arguments, SYNC)


def of_table(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a ``ProvisionTableOperator``; ``InvalidInputError`` for others."""
    return _admitted(arguments, TABLE)


def of_compaction(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a ``CompactTableOperator``; ``InvalidInputError`` for others."""
    return _admitted(arguments, COMPACTION)


CHECKS_OF_MAPPED: tuple[Callable[[Mapping[str, Any]], Mapping[str, Any]], ...] = (
    of_stream,
    of_sync,
    of_table,
    of_compaction,
)


def keeps_tables(functions: Collection[object]) -> bool:
    """Whether functions of ``map``, which the scheduler knows by their source text, are all among the checks here."""
    known = {inspect.getsource(each) for each in CHECKS_OF_MAPPED}
    return all(each in known or each in CHECKS_OF_MAPPED for each in functions)


def _admitted(arguments: object, names: Collection[str]) -> Mapping[str, Any]:
    if isinstance(arguments, Mapping) and all(name in names for name in arguments):
        return arguments
    from storage_lib.errors import InvalidInputError

    given = list(arguments) if isinstance(arguments, Mapping) else arguments
    message = (
        f"a mapped task takes only {', '.join(sorted(names))} from the result of another task, not {given!r}. The "
        "result was changed, or made by another version: clear that task. Other arguments belong in the DAG"
    )
    raise InvalidInputError(message)
