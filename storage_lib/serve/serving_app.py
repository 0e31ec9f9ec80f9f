"""The ASGI application of the server: Iceberg's REST catalog below ``/iceberg``, Paimon's below ``/paimon``.

It can be mounted below a path of another application. ``/iceberg/openapi.json`` and ``/paimon/openapi.json`` describe
the paths, without a page that shows them, since it would load scripts from another host and ask for a token.
"""

from __future__ import annotations

import re

from fastapi import Depends, FastAPI
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp

from storage_lib.catalog.catalog import Catalog
from storage_lib.distribution import VERSION
from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import Clock
from storage_lib.serve.access.server_access import Access
from storage_lib.serve.iceberg_catalog import iceberg_api, oauth_api
from storage_lib.serve.iceberg_catalog.iceberg_errors import answer_errors as answer_iceberg_errors
from storage_lib.serve.paimon_catalog import data_token_api, paimon_api, versions_api
from storage_lib.serve.paimon_catalog.paimon_errors import answer_errors as answer_paimon_errors
from storage_lib.serve.requests.local_requests import LocalRequests
from storage_lib.serve.requests.request_counts import CountedRequests, RequestCounts
from storage_lib.serve.requests.served import Served, client_of, serve_with
from storage_lib.serve.vending.vending import Vending

WAREHOUSE = "main"
"""The name by which clients may ask for the warehouse."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def serving_app(
    catalog: Catalog, access: Access, clock: Clock, *, warehouse: str = WAREHOUSE, vending: Vending | None = None
) -> ASGIApp:
    """Return the application over a catalog; ``warehouse`` is the name that clients may give it.

    ``vending`` makes the clients' credentials for the store; None: they need their own.

    Raises ``InvalidInputError`` if the name is not one of letters, digits, '_' and '-': it becomes a part of paths.
    """
    if not _NAME.fullmatch(warehouse):
        message = f"invalid name {warehouse!r} of the warehouse; use letters, digits, '_' and '-'"
        raise InvalidInputError(message)
    counts = RequestCounts()
    served = Served(catalog=catalog, access=access, counts=counts, warehouse=warehouse, vending=vending)
    app = FastAPI(
        title="Dynamic tables", version=VERSION, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    serve_with(app, served)
    answer_iceberg_errors(app)

    @app.get("/metrics", dependencies=[Depends(client_of)])
    def metrics() -> PlainTextResponse:
        return PlainTextResponse(counts.as_text(), media_type="text/plain; version=0.0.4")

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "up"}

    iceberg = _catalog_app("Iceberg REST catalog of dynamic tables", "iceberg", served, clock)
    answer_iceberg_errors(iceberg)
    iceberg.include_router(oauth_api.router)
    iceberg.include_router(iceberg_api.router)
    app.mount("/iceberg", iceberg)
    paimon = _catalog_app("Paimon REST catalog of dynamic tables", "paimon", served, clock)
    answer_paimon_errors(paimon)
    paimon.include_router(versions_api.router)
    paimon.include_router(data_token_api.router)
    paimon.include_router(paimon_api.router)
    app.mount("/paimon", paimon)
    return app if access.needs_tokens else LocalRequests(app)


def _catalog_app(title: str, name: str, served: Served, clock: Clock) -> FastAPI:
    app = FastAPI(title=title, version=VERSION, docs_url=None, redoc_url=None, redirect_slashes=False)
    serve_with(app, served)
    app.add_middleware(CountedRequests, catalog=name, counts=served.counts, monotonic=clock.monotonic)
    return app
