"""The command ``serve``: a server from which other engines get tables by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from storage_lib.cli.context import reporting, settings_of
from storage_lib.cli.output import note, print_fields
from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError


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
) -> None:
    """Serve the tables to other engines: REST catalogs of Iceberg, over the tables' views, and of Paimon.

    Prints the addresses, and runs until it is interrupted. Without --clients, every program of this machine can read
    all tables.
    """
    with importing_for("the server", InvalidInputError):
        from storage_lib.serve.serving_process import serve_catalog
    from storage_lib.io.environment import SystemClock

    settings = settings_of(context)

    def announce(address: str) -> None:
        print_fields(
            {"Iceberg": f"{address}/iceberg", "Paimon": f"{address}/paimon", "metrics": f"{address}/metrics"},
            as_json=settings.as_json,
        )
        if clients is None:
            note("no --clients: every program of this machine can read all tables, and none can change them")

    serve_catalog(
        settings.catalog(),
        SystemClock(),
        host=host,
        port=port,
        clients=clients,
        certificate=certificate,
        key=key,
        warehouse=name,
        on_listening=announce,
    )
