"""Parts common to all commands: the catalog, the output format, and the exit codes of errors.

Exit codes: 0: success. 1: refused, or a problem with the table. 2: invalid command line. 75 (EX_TEMPFAIL of
`sysexits.h`): a transient failure; try again.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import typer

from storage_lib.errors import InvalidInputError, NotFoundError, RetryableError, StorageError

if TYPE_CHECKING:
    from storage_lib import Catalog, DynamicTable

WAREHOUSE_VARIABLE = "DYNAMIC_TABLE_WAREHOUSE"
BROKERS_VARIABLE = "DYNAMIC_TABLE_BOOTSTRAP_SERVERS"
REFUSED = 1
TRY_AGAIN = 75

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Settings:
    """Options common to all commands."""

    warehouse: str = ""
    options: dict[str, str] = field(default_factory=dict)
    as_json: bool = False

    @property
    def warehouse_exists(self) -> bool:
        """Whether the warehouse's directory exists; true if the warehouse is not a local directory."""
        is_directory = self.options.get("metastore", "filesystem") == "filesystem" and "://" not in self.warehouse
        return not is_directory or Path(self.warehouse).is_dir()

    def catalog(self, *, may_be_new: bool = False) -> Catalog:
        """Open the catalog; raises ``NotFoundError`` for a missing directory unless ``may_be_new``."""
        from storage_lib import open_catalog

        if not self.warehouse:
            message = f"no warehouse given; use --warehouse /path or s3://bucket/path, or set {WAREHOUSE_VARIABLE}"
            raise InvalidInputError(message)
        if not may_be_new and not self.warehouse_exists:
            message = f"warehouse {self.warehouse} does not exist; `dynamic-table create` makes it with its first table"
            raise NotFoundError(message)
        return open_catalog(self.warehouse, self.options)

    def table(self, name: str) -> DynamicTable:
        """Open one table; raises ``NotFoundError`` if it does not exist."""
        return self.catalog().load_table(name)


def settings_of(context: typer.Context) -> Settings:
    """Return the settings of the command line; defaults if there are none."""
    found: Settings = context.find_object(Settings) or Settings()
    return found


def with_brokers(options: dict[str, str]) -> dict[str, str]:
    """Return the options, with the brokers of the environment unless the options set them."""
    servers = os.environ.get(BROKERS_VARIABLE)
    return {"log.kafka.bootstrap.servers": servers, **options} if servers else options


def reporting(command: Callable[_Parameters, _Answer]) -> Callable[_Parameters, _Answer]:
    """Wrap a command: print its errors to standard error and end with an exit code."""

    @functools.wraps(command)
    def run(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Answer:
        try:
            return command(*arguments, **named)
        except BrokenPipeError:
            # The reader closed the pipe, as `| head` does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except StorageError as error:
            _report(error, named.get("context"))
            raise typer.Exit(TRY_AGAIN if isinstance(error, RetryableError) else REFUSED) from error
        except OSError as error:
            _report(error, named.get("context"))
            raise typer.Exit(REFUSED) from error

    return run


def _report(error: StorageError | OSError, context: object) -> None:
    """Print an error to standard error: as text, or with ``--json`` as one line of JSON."""
    notes = getattr(error, "__notes__", [])
    if context is None or not settings_of(cast("typer.Context", context)).as_json:
        text = f"{type(error).__name__}: {error}" if isinstance(error, StorageError) else f"{error}"
        typer.echo(without_secrets("\n".join([text, *notes])), err=True)
        return
    document = {
        "error": type(error).__name__,
        "message": without_secrets(str(error)),
        "notes": [without_secrets(note) for note in notes],
        "retryable": isinstance(error, RetryableError),
        "committed": getattr(error, "committed", None),
    }
    typer.echo(json.dumps(document, ensure_ascii=False), err=True)


def without_secrets(text: str) -> str:
    """Return an error's text without passwords in addresses."""
    from storage_lib.schema.options.secret_text import without_password

    return without_password(text)
