"""The pages' FastAPI application. Each request needs Airflow's permission to read assets.

    GET tables                       the list of tables          ?connection=dynamic_table_default
    GET table?name=db.table          one table
    GET api/tables, api/table        the same as JSON, which the pages poll every few seconds
    GET api/graph?name=db.table      the tables up and down stream of a table
    GET docs/<connection>/<table>/   Great Expectations' results for a table, as its own pages
    GET static/...                   scripts and styles; no page loads from other servers

Only connections that an administrator has published are opened (``published_connection``).

The application serves GET only. The pages make changes through Airflow's own API, with the user's permissions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.security import requires_access_asset
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from dynamic_table.hook import DynamicTableHook
from dynamic_table.pages.kept_boards import KeptBoards
from dynamic_table.pages.published_connection import NotPublishedError, published_hook
from dynamic_table.pages.shown_error import shown_error
from dynamic_table.quality.data_docs import DataDocs, docs_root
from dynamic_table.quality.docs_index import docs_index

__all__ = ["app"]

STATIC = Path(__file__).with_name("static")
STATIC_FILES = frozenset(path.name for path in STATIC.iterdir() if path.suffix in (".js", ".css"))
INDEX = "index.html"
NO_SUCH_PAGE = (
    "Page not found: its connection is not published, or its table has no validation results, or they have expired."
)
# The pages show values as text, never as markup; should one slip through, the browser would not execute it.
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'"

# Great Expectations' pages have inline styles; their scripts, which other servers host, are not executed.
DOCS_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'; sandbox"
)

app = FastAPI(
    title="Dynamic tables",
    dependencies=[Depends(requires_access_asset("GET"))],
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
)
_boards = KeptBoards()


@app.middleware("http")
async def _hardened(request: Request, call_next: Any) -> Response:
    response: Response = await call_next(request)
    response.headers["Content-Security-Policy"] = DOCS_POLICY if "/docs/" in request.url.path else POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    if "/static/" not in request.url.path:
        response.headers["Cache-Control"] = "no-store"
    return response


@app.get("/tables")
def tables_page() -> FileResponse:
    """Return the page that lists the tables."""
    return FileResponse(STATIC / "tables.html")


@app.get("/table")
def table_page() -> FileResponse:
    """Return the page of one table."""
    return FileResponse(STATIC / "table.html")


@app.get("/api/tables")
def tables(connection: str = DynamicTableHook.default_conn_name) -> JSONResponse:
    """Return the health of every table."""
    return _answered(connection, lambda hook: {"tables": _boards.board(hook).rows()})


@app.get("/api/table")
def table(name: str, connection: str = DynamicTableHook.default_conn_name) -> JSONResponse:
    """Return the details of one table."""
    return _answered(connection, lambda hook: _boards.board(hook).view(name))


@app.get("/api/graph")
def graph(name: str, connection: str = DynamicTableHook.default_conn_name) -> JSONResponse:
    """Return the tables from which a table is computed, and those that are computed from it."""
    return _answered(connection, lambda hook: _boards.board(hook).graph(name))


def _answered(connection: str, answer: Callable[[DynamicTableHook], Any]) -> JSONResponse:
    """Return the answer, or the error in a form that may be shown."""
    from storage_lib.errors import NotFoundError

    try:
        hook = published_hook(connection)
    except NotPublishedError as error:
        return JSONResponse({"error": str(error)}, status_code=404)
    secrets: tuple[str, ...] = ()
    try:
        secrets = hook.secrets()
        return JSONResponse(answer(hook))
    except Exception as error:  # noqa: BLE001  shown_error hides secrets
        status = 404 if isinstance(error, NotFoundError) else 503
        return JSONResponse({"error": shown_error(error, secrets)}, status_code=status)


@app.get("/static/{name}")
def static(name: str) -> FileResponse:
    """Return a script or a style sheet; a mounted folder would skip authentication."""
    if name not in STATIC_FILES:
        raise HTTPException(404)
    return FileResponse(STATIC / name, headers={"Cache-Control": "max-age=3600"})


@app.get("/docs/{connection}/{table}/{page:path}")
def data_docs(connection: str, table: str, page: str) -> Response:
    """Return a page of a table's validations, their list, or a style sheet."""
    try:
        docs = DataDocs(root=docs_root(published_hook(connection)), table=table)
    except NotPublishedError as error:
        raise HTTPException(404, NO_SUCH_PAGE) from error
    try:
        site = docs.site.resolve()
        path = (site / (page or INDEX)).resolve()
        is_there = path.is_relative_to(site) and site.is_relative_to(docs.root.resolve()) and path.is_file()
    except (OSError, ValueError):  # no file can have such a name
        is_there = False
    if not is_there:
        raise HTTPException(404, NO_SUCH_PAGE)
    return HTMLResponse(docs_index(docs)) if path == site / INDEX else FileResponse(path)
