"""The application behind the pages. Each request needs what Airflow asks of those who look at its assets.

    GET tables                       the list of tables          ?connection=dynamic_table_default
    GET table?name=db.table          one table
    GET api/tables, api/table        the same as JSON, which the pages ask for again every few seconds
    GET static/...                   scripts and styles; nothing comes from another server

It answers to GET only. What changes something is done by Airflow's own API, under the user's own permissions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.security import requires_access_asset
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from dynamic_table.hook import DynamicTableHook
from dynamic_table.pages.kept_boards import KeptBoards

__all__ = ["app"]

STATIC = Path(__file__).with_name("static")
STATIC_FILES = frozenset(path.name for path in STATIC.iterdir() if path.suffix in (".js", ".css"))
# Values of tables are text to these pages, never markup; should one slip through, nothing would run it.
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'"

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
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    if "/static/" not in request.url.path:
        response.headers["Cache-Control"] = "no-store"
    return response


@app.get("/tables")
def tables_page() -> FileResponse:
    """The list of tables."""
    return FileResponse(STATIC / "tables.html")


@app.get("/table")
def table_page() -> FileResponse:
    """One table."""
    return FileResponse(STATIC / "table.html")


@app.get("/api/tables")
def tables(connection: str = DynamicTableHook.default_conn_name) -> JSONResponse:
    """Every table's health."""
    return _answered(lambda: {"tables": _boards.board(connection).rows()})


@app.get("/api/table")
def table(name: str, connection: str = DynamicTableHook.default_conn_name) -> JSONResponse:
    """Everything of one table."""
    return _answered(lambda: _boards.board(connection).view(name))


def _answered(answer: Any) -> JSONResponse:
    """The answer, or in words what is wrong."""
    try:
        return JSONResponse(answer())
    except Exception as error:  # noqa: BLE001  shown on the page
        from storage_lib.errors import NotFoundError

        status = 404 if isinstance(error, NotFoundError) else 503
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, status_code=status)


@app.get("/static/{name}")
def static(name: str) -> FileResponse:
    """A script or a style; not mounted as a folder, because that would ask nobody who he is."""
    if name not in STATIC_FILES:
        raise HTTPException(404)
    return FileResponse(STATIC / name, headers={"Cache-Control": "max-age=3600"})
