"""What an operator says about its sink, as the library's `SinkSpec`, with the secrets kept out of the file."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.configuration import AIRFLOW_HOME

from dynamic_table.arguments.rendered_argument import checked_mapping, checked_options, checked_text, is_nothing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dynamic_table.hook import DynamicTableHook
    from storage_lib.spark.sink.sink_spec import SinkSource

__all__ = [
    "checked_open_options",
    "checked_source",
    "checkpoint_directory",
    "is_permanent",
    "jobs_root",
    "secrets_apart",
]

# Spark finds these before it runs anything: the query itself is wrong.
STATE_DIRECTORY = "scan.normalize.state-directory"
WRONG_QUERIES = ("AnalysisException", "ParseException")


def jobs_root(hook: DynamicTableHook, chosen: str | None = None) -> Path:
    """Return the directory of all sinks: the one chosen, the connection's, or one in Airflow's home."""
    directory = chosen or hook.extra.get("jobs_directory")
    return Path(directory) if directory else Path(AIRFLOW_HOME) / "dynamic_table_jobs"


def checked_source(source: object) -> SinkSource:
    """Return what an operator's ``source`` says; an InvalidInputError names the key that is wrong."""
    from storage_lib.errors import InvalidInputError
    from storage_lib.spark.sink.sink_spec import SinkSource

    given = checked_mapping(source, "source")
    known = ("kind", "name", "schema", "options")
    if unknown := sorted(set(given) - set(known)):
        message = f"source has the unknown key {unknown[0]!r}; known are {', '.join(known)}."
        raise InvalidInputError(message)
    options = checked_open_options(given.get("options"), "source['options']")
    if STATE_DIRECTORY in options:
        message = f"source['options'] names {STATE_DIRECTORY}: a sink keeps its state beside its checkpoint"
        raise InvalidInputError(message)
    return SinkSource(
        kind=checked_text(given.get("kind"), "source['kind']"),
        name=checked_text(given.get("name"), "source['name']"),
        schema=None if is_nothing(schema := given.get("schema")) else checked_text(schema, "source['schema']"),
        options=options,
    )


def checkpoint_directory(table_directory: Path, source: SinkSource) -> Path:
    """Return where the sinks of a table that read a source keep their checkpoint.

    A checkpoint knows one source. A sink that changes to another one and back goes on where it was with each.
    """
    name = str(source.options.get("source", source.name))
    readable = re.sub(r"[^\w.-]", "_", f"{source.kind}-{name}", flags=re.ASCII)[:100]
    digest = hashlib.sha256(f"{source.kind} {name}".encode()).hexdigest()[:8]
    return table_directory / "sources" / f"{readable}-{digest}" / "checkpoint"


def checked_open_options(value: object, argument: str) -> dict[str, str]:
    """Return options of which none is a secret: what a sink is told lies in a file, and in Airflow's database."""
    from storage_lib.errors import InvalidInputError
    from storage_lib.schema.options.table_options import is_secret_option

    options = checked_options(value, argument)
    if secret := next((key for key, text in options.items() if is_secret_option(key, text)), None):
        message = (
            f"{argument} names {secret}, which is a secret, and would lie in a file, or holds one: give it to the "
            "connection (Spark's own to the configuration of Spark)."
        )
        raise InvalidInputError(message)
    return options


def secrets_apart(
    options: Mapping[str, str], also_secret: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Split options into open ones, ``{option: variable}`` for the secret ones, and ``{variable: value}``.

    ``also_secret`` are keys that count as secret whatever they are called. The first two results may lie on disk; the
    third goes into the environment of the sink's process.
    """
    from storage_lib.schema.options.table_options import is_secret_option

    secret = sorted(key for key, value in options.items() if key in also_secret or is_secret_option(key, value))
    variables = {key: f"DYNAMIC_TABLE_SECRET_{number}" for number, key in enumerate(secret)}
    shown = {key: value for key, value in options.items() if key not in variables}
    return (shown, variables, {variable: options[key] for key, variable in variables.items()})


def is_permanent(error: Any) -> bool:
    """Tell whether a heartbeat's ``error``, which begins with its class, would only come again."""
    from storage_lib import errors

    name = str(error or "").partition(":")[0].strip()
    if name.rpartition(".")[2] in WRONG_QUERIES:
        return True
    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.PermanentError)
