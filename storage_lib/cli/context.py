"""What every command has in common: the catalog, how to answer, and what an error's exit code is.

0: done. 1: refused, or something is wrong with the table. 2: the command line itself. 75 (EX_TEMPFAIL): worth another
try, as `sysexits.h` has it.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import typer

from storage_lib.errors import InvalidInputError, RetryableError, StorageError

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
    """The options before the command."""

    warehouse: str = ""
    options: dict[str, str] = field(default_factory=dict)
    as_json: bool = False

    def catalog(self) -> Catalog:
        """Open the catalog."""
        from storage_lib import open_catalog

        if not self.warehouse:
            message = f"say where the tables are: --warehouse /path or s3://bucket/path, or set {WAREHOUSE_VARIABLE}"
            raise InvalidInputError(message)
        return open_catalog(self.warehouse, self.options)

    def table(self, name: str) -> DynamicTable:
        """Open one table."""
        return self.catalog().load_table(name)


def settings_of(context: typer.Context) -> Settings:
    """What was said before the command."""
    found: Settings = context.find_object(Settings) or Settings()
    return found


def with_brokers(options: dict[str, str]) -> dict[str, str]:
    """The options and, unless they say otherwise, the environment's brokers."""
    servers = os.environ.get(BROKERS_VARIABLE)
    return {"log.kafka.bootstrap.servers": servers, **options} if servers else options


def reporting(command: Callable[_Parameters, _Answer]) -> Callable[_Parameters, _Answer]:
    """Make an error one line on standard error and an exit code."""

    @functools.wraps(command)
    def run(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Answer:
        try:
            return command(*arguments, **named)
        except BrokenPipeError:
            # Whoever read us has seen enough, as `| head` has.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except StorageError as error:
            told = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
            typer.echo(_shown("\n".join(told)), err=True)
            raise typer.Exit(TRY_AGAIN if isinstance(error, RetryableError) else REFUSED) from error
        except OSError as error:
            typer.echo(_shown(f"{error}"), err=True)
            raise typer.Exit(REFUSED) from error

    return run


def _shown(text: str) -> str:
    """An error without the password of an address that it may hold."""
    from storage_lib.schema.secret_text import without_password

    return without_password(text)
