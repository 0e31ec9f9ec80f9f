"""Column lineage: from which columns of other models, seeds and sources each column of a model is computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from storage_lib import InvalidInputError
from storage_lib.materialized.algebra import SourceTable
from storage_lib.materialized.algebra.column_lineage import column_lineage
from storage_lib.materialized.algebra.read.table_names import tables_of

Columns = dict[str, list[str]]
"""The columns that each column is computed from, as ``database.table.column``."""


def compiled_query(project: Path, target: Path, node: Mapping[str, Any]) -> str:
    """Return the text that dbt has compiled a model to. Raises ``DbtRuntimeError`` if it has not."""
    path = project / target / "compiled" / node["package_name"] / node["original_file_path"]
    if not path.exists():
        message = f"model {node['name']} is not compiled: {path} does not exist; run dbt compile first"
        raise DbtRuntimeError(message)
    return path.read_text(encoding="utf-8")


def columns_of_models(
    nodes: Iterable[Mapping[str, Any]],
    query_of: Callable[[Mapping[str, Any]], str],
    source_of: Callable[[str], SourceTable | None],
) -> Iterator[tuple[Mapping[str, Any], Columns | str]]:
    """Yield each model with the lineage of its columns, or why it is not known.

    ``source_of`` returns the columns of a table or view; None if it does not exist.
    """
    for node in nodes:
        text = query_of(node)
        try:
            found = [source_of(name) for name in tables_of(text, database=node["schema"])]
            there = [each for each in found if each is not None]
            traced = column_lineage(text, there, database=node["schema"])
        except InvalidInputError as error:
            yield node, str(error)
        else:
            yield node, {name: [".".join(each) for each in columns] for name, columns in traced.items()}


def selected(nodes: Sequence[Mapping[str, Any]], model: str | None) -> Sequence[Mapping[str, Any]]:
    """Return the model of that name; None: all. Raises ``DbtRuntimeError`` if there is none."""
    found = [each for each in nodes if model in (None, each["name"])]
    if model is not None and not found:
        message = f"the project has no model {model} that is built from a query"
        raise DbtRuntimeError(message)
    return found


def report(found: Iterable[tuple[Mapping[str, Any], Columns | str]], file: Path) -> Iterator[str]:
    """Yield a line for each column, and write them all to a JSON file, by model; null if a model's are not known."""
    written: dict[str, Columns | None] = {}
    for node, columns in found:
        if isinstance(columns, str):
            yield f"{node['name']}: not known: {columns}"
            written[node["unique_id"]] = None
            continue
        written[node["unique_id"]] = columns
        for name, sources in columns.items():
            yield f"{node['name']}.{name} <- {', '.join(sources) or 'no column'}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    yield f"written to {file}"
