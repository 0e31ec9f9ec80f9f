"""Whether a materialized table would read itself, directly or through other materialized tables."""

from __future__ import annotations

from storage_lib.catalog.catalog import Catalog


def path_between(catalog: Catalog, name: str, target: str) -> tuple[str, ...] | None:
    """Return the names of tables that lead from ``name`` to ``target``, each read by the one before it.

    None if ``name`` does not depend on ``target``. Sources that do not exist lead nowhere.
    """
    paths: list[tuple[str, ...]] = [(name,)]
    seen = {name}
    while paths:
        path = paths.pop()
        if path[-1] == target:
            return path
        definition = catalog.load_table(path[-1]).definition if catalog.table_exists(path[-1]) else None
        for source in () if definition is None else definition.sources:
            if source not in seen:
                seen.add(source)
                paths.append((*path, source))
    return None
