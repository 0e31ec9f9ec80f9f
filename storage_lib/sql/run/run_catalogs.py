"""CREATE CATALOG, DROP CATALOG and SHOW CATALOGS. Catalogs beside the session's own last as long as the session."""

from __future__ import annotations

from storage_lib.errors import AlreadyExistsError
from storage_lib.sql.run.run_show_describe import matches
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.session_catalogs import open_session_catalog
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.show_describe import ShowCatalogs
from storage_lib.sql.statements.table_statements import CreateCatalog, DropCatalog


def run_create_catalog(state: SessionState, statement: CreateCatalog) -> Result:
    """Open a catalog, whose tables queries name by three parts."""
    name = statement.catalog
    if name == state.catalog_name or name in state.catalogs:
        if statement.if_not_exists:
            return Result(message=f"catalog {name} exists already")
        message = f"catalog {name} exists already; choose another name, or DROP CATALOG {name}"
        raise AlreadyExistsError(message)
    state.catalogs[name] = open_session_catalog(name, statement.options)
    return Result(message=f"catalog {name} opened for this session")


def run_drop_catalog(state: SessionState, statement: DropCatalog) -> Result:
    """Forget a catalog; its tables remain."""
    if statement.if_exists and statement.catalog not in state.catalogs:
        return Result(message=f"catalog {statement.catalog} does not exist")
    del state.catalogs[state.opened_catalog(statement.catalog).name]
    return Result(message=f"catalog {statement.catalog} forgotten; its tables remain")


def run_show_catalogs(state: SessionState, statement: ShowCatalogs) -> Result:
    """List the session's own catalog and those that it opened."""
    own = (state.catalog_name, "dynamic tables", state.catalog.warehouse)
    lines = [own, *((each.name, each.kind, each.warehouse) for _, each in sorted(state.catalogs.items()))]
    found: list[tuple[str | None, ...]] = [line for line in lines if matches(line[0], statement.pattern)]
    return Result(rows=rows_of(("catalog", "type", "warehouse"), found))
