"""The command ``serve``: a server from which other engines get tables by its address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from storage_lib.cli.context import reporting, settings_of
from storage_lib.cli.output import note, print_fields
from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib import Catalog
    from storage_lib.io.environment import Clock
    from storage_lib.serve.vending.vending import Vending


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reporting(serve))


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine's need --clients.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8181,
    clients: Annotated[
        Path | None,
        typer.Option(help="File of clients, with their tokens and databases. Only you may have access to it."),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Certificate for TLS, a PEM file.")] = None,
    key: Annotated[Path | None, typer.Option(help="Key of the certificate, a PEM file.")] = None,
    name: Annotated[str, typer.Option(help="Name by which clients may ask for the warehouse.")] = "main",
    role: Annotated[
        str | None,
        typer.Option(help="Role of AWS (arn:aws:iam::...) whose temporary credentials clients get, for a table each."),
    ] = None,
    token_service: Annotated[
        str | None, typer.Option(help="Address of the token service (STS), if it is not AWS's; needs --role.")
    ] = None,
) -> None:
    """Serve the tables to other engines: REST catalogs of Iceberg, over the tables' views, and of Paimon.

    Prints the addresses, and runs until it is interrupted. Without --clients, every program of this machine can read
    all tables.
    """
    with importing_for("the server", InvalidInputError):
        from storage_lib.serve.serving_process import serve_catalog
    from storage_lib.io.environment import SystemClock

    settings = settings_of(context)
    catalog, clock = settings.catalog(), SystemClock()
    if role is None and token_service is not None:
        message = "--token-service needs a role whose credentials clients get: add --role"
        raise InvalidInputError(message)
    vending = None if role is None else _vending(catalog, clock, role, token_service)

    def announce(address: str) -> None:
        print_fields(
            {"Iceberg": f"{address}/iceberg", "Paimon": f"{address}/paimon", "metrics": f"{address}/metrics"},
            as_json=settings.as_json,
        )
        if clients is None:
            note("no --clients: every program of this machine can read all tables, and none can change them")

    serve_catalog(
        catalog,
        clock,
        host=host,
        port=port,
        clients=clients,
        certificate=certificate,
        key=key,
        warehouse=name,
        vending=vending,
        on_listening=announce,
    )


def _vending(catalog: Catalog, clock: Clock, role: str, token_service: str | None) -> Vending:
    """Return what makes credentials of a role, without asking for any."""
    with importing_for("credentials for clients", InvalidInputError):
        from storage_lib.serve.vending.assumed_role import AssumedRole
    from storage_lib.io.file_io_factory import absolute_place
    from storage_lib.serve.vending.vending import Vending

    service = AssumedRole(role, catalog.options, address=token_service)
    return Vending(service, clock, warehouse=absolute_place(catalog.warehouse))
