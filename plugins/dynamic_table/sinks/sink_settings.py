"""Converts an operator's arguments to the library's `SinkSpec`, keeping secrets out of the file."""

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
    from storage_lib.spark.stream.sink.sink_spec import SinkSource

__all__ = [
    "checked_open_options",
    "checked_source",
    "checkpoint_directory",
    "is_permanent",
    "jobs_root",
    "secrets_apart",
]

STATE_DIRECTORY = "scan.normalize.state-directory"
# Spark raises these before it runs anything: the query itself is invalid.
WRONG_QUERIES = ("AnalysisException", "ParseException")


def jobs_root(hook: DynamicTableHook, chosen: str | None = None) -> Path:
    """Return the directory of all sinks: the given one, the connection's, or one in Airflow's home."""
    directory = chosen or hook.extra.get("jobs_directory")
    return Path(directory) if directory else Path(AIRFLOW_HOME) / "dynamic_table_jobs"


def checked_source(source: object) -> SinkSource:
    """Parse an operator's ``source``; an InvalidInputError names the invalid key."""
    from storage_lib.errors import InvalidInputError
    from storage_lib.spark.stream.sink.sink_spec import SinkSource

    given = checked_mapping(source, "source")
    known = ("kind", "name", "schema", "options")
    if unknown := sorted(set(given) - set(known)):
        message = f"source has the unknown key {unknown[0]!r}; known are {', '.join(known)}."
        raise InvalidInputError(message)
    options = checked_open_options(given.get("options"), "source['options']")
    if STATE_DIRECTORY in options:
        message = f"source['options'] names {STATE_DIRECTORY}: a sink keeps its state next to its checkpoint"
        raise InvalidInputError(message)
    return SinkSource(
        kind=checked_text(given.get("kind"), "source['kind']"),
        name=checked_text(given.get("name"), "source['name']"),
        schema=None if is_nothing(schema := given.get("schema")) else checked_text(schema, "source['schema']"),
        options=options,
    )


def checkpoint_directory(table_directory: Path, source: SinkSource) -> Path:
    """Return the checkpoint directory of a table's sinks for one source.

    Each source has its own checkpoint, so a sink that switches to another source and back resumes each where it was.
    """
    name = str(source.options.get("source", source.name))
    readable = re.sub(r"[^\w.-]", "_", f"{source.kind}-{name}", flags=re.ASCII)[:100]
    digest = hashlib.sha256(f"{source.kind} {name}".encode()).hexdigest()[:8]
    return table_directory / "sources" / f"{readable}-{digest}" / "checkpoint"


def checked_open_options(value: object, argument: str) -> dict[str, str]:
    """Return the options; raises InvalidInputError for a secret, which a file and Airflow's database would store."""
    from storage_lib.errors import InvalidInputError
    from storage_lib.schema.options.table_options import is_secret_option

    options = checked_options(value, argument)
    if secret := next((key for key, text in options.items() if is_secret_option(key, text)), None):
        message = (
            f"{argument} names {secret}, which is a secret or contains one, and would be stored in a file: move it to "
            "the connection (secrets of Spark to Spark's configuration)."
        )
        raise InvalidInputError(message)
    return options


def secrets_apart(
    options: Mapping[str, str], also_secret: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Split options into plain ones, ``{option: variable}`` for the secret ones, and ``{variable: value}``.

    ``also_secret`` are further keys to treat as secret. The first two results may be stored on disk; the third is for
    the environment of the sink's process.
    """
    from storage_lib.schema.options.table_options import is_secret_option

    secret = sorted(key for key, value in options.items() if key in also_secret or is_secret_option(key, value))
    variables = {key: f"DYNAMIC_TABLE_SECRET_{number}" for number, key in enumerate(secret)}
    shown = {key: value for key, value in options.items() if key not in variables}
    return (shown, variables, {variable: options[key] for key, variable in variables.items()})


def is_permanent(error: Any) -> bool:
    """Return whether a heartbeat's ``error``, which starts with its class, is permanent."""
    from storage_lib import errors

    name = str(error or "").partition(":")[0].strip()
    if name.rpartition(".")[2] in WRONG_QUERIES:
        return True
    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.PermanentError)
