"""Expectations of a table in a file, ``expectations/<db>.<table>.yaml`` (or ``.json``) next to the DAGs.

    - type: expect_column_values_to_not_be_null
      kwargs: {column: id}
      severity: critical        # fails the task; warning and info are counted

A suite exported by Great Expectations, a mapping with ``expectations``, is accepted as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from dynamic_table.arguments.rendered_argument import is_nothing
from dynamic_table.declarations.table_declarations import load_yaml, refusal
from dynamic_table.policies.allowed_callable import load_allowed_callable
from dynamic_table.quality.linear_regex import with_re2
from dynamic_table.quality.listed_expectations import refuse_unlisted

__all__ = ["expectations_of"]

FOLDER = "expectations"
SUFFIXES = (".yaml", ".yml", ".json")


def expectations_of(named: object, table: str, folder: Path) -> Any:
    """Return the expectations: those given, those of the given file or function, or those of the table's own file.

    A relative path is resolved against ``folder``, the DAG file's. Raises InvalidInputError for a missing file, and
    for expectations that are given as plain data and not listed for forms.
    """
    from storage_lib.errors import InvalidInputError

    if is_nothing(named):
        candidates = [folder / FOLDER / f"{table}{suffix}" for suffix in SUFFIXES]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            message = f"{table} has no expectations: write {candidates[0]}, or give the task some."
            raise InvalidInputError(message)
        return _listed(load_yaml(found), found)
    if not isinstance(named, str) or named.lstrip().startswith("["):
        refuse_unlisted(named)
        return [with_re2(each) if isinstance(each, Mapping) else each for each in named] if _is_list(named) else named
    if ":" in named and Path(named).suffix not in SUFFIXES:
        return _listed(load_allowed_callable(named)(), named)
    try:
        path = (folder / named).resolve()
        path.is_file()  # an OSError if its name is too long
    except (ValueError, OSError) as wrong:
        message = f"{named!r} is not the name of a file of expectations: {wrong}"
        raise InvalidInputError(message) from wrong
    if not path.is_relative_to(folder.resolve()):
        message = (
            f"{named} is outside of the DAG's folder {folder}; a file of expectations lies next to the DAG or below."
        )
        raise InvalidInputError(message)
    return _listed(load_yaml(path), path)


def _is_list(given: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(given, list | tuple)


def _listed(suite: Any, where: Path | str) -> Any:
    listed = suite.get("expectations") if isinstance(suite, Mapping) else suite
    if not _is_list(listed) or not listed:
        raise refusal(str(where), "contains no list of expectations such as [{type: expect_..., kwargs: {column: id}}]")
    return listed
