"""State that requests share: the catalog, who may use it, the time, and counts of requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from storage_lib.catalog.catalog import Catalog
from storage_lib.serve.access.served_client import ServedClient
from storage_lib.serve.access.server_access import Access
from storage_lib.serve.requests.request_counts import RequestCounts
from storage_lib.serve.vending.vending import Vending


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The parts of a server. ``warehouse`` is the name under which clients may ask for the catalog.

    Without ``vending``, clients need credentials of their own for the store.
    """

    catalog: Catalog
    access: Access
    counts: RequestCounts
    warehouse: str
    vending: Vending | None = None


def serve_with(app: FastAPI, served: Served) -> None:
    """Give an application what its requests are answered from."""
    app.state.served = served


def served_of(request: Request) -> Served:
    """Return what a request is answered from."""
    served: Served = request.app.state.served
    return served


def client_of(request: Request) -> ServedClient:
    """Return the client that sent a request. Raises ``RefusedRequestError`` for an unknown one."""
    return served_of(request).access.client(request.headers.get("authorization"))


ServedParts = Annotated[Served, Depends(served_of)]
Client = Annotated[ServedClient, Depends(client_of)]
