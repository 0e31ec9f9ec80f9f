"""Settings of SET: keys of the session, defaults of table options (``table-storage.<key>``), and Spark's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.known_options import refuse_unknown_options
from storage_lib.schema.options.nearest import did_you_mean, nearest
from storage_lib.schema.options.option_values import parse_boolean, parse_millis
from storage_lib.schema.options.secret_refusal import refuse_secret
from storage_lib.schema.options.table_options import SESSION_PREFIX, TableOptions, canonical_key, masked
from storage_lib.sql.state.definition_options import refuse_definition_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNTIME_MODE = "execution.runtime-mode"
CHECKPOINTS = "execution.checkpointing.dir"
CHECKPOINT_INTERVAL = "execution.checkpointing.interval"
REAL_TIME = "execution.real-time"
PIPELINE_NAME = "pipeline.name"
DML_SYNC = "table.dml-sync"
SPARK_PREFIX = "spark."


class RuntimeMode(StrEnum):
    """Whether a query reads one snapshot or an unbounded stream of changes."""

    BATCH = "batch"
    STREAMING = "streaming"


OWN_SETTINGS: Mapping[str, tuple[str, str]] = {
    RUNTIME_MODE: (
        "batch",
        "batch: a query reads one snapshot; streaming: it reads changes, and INSERT starts a query",
    ),
    CHECKPOINTS: ("", "the directory below which each streaming INSERT has its checkpoint"),
    CHECKPOINT_INTERVAL: ("0 ms", "the time between two micro-batches of a streaming INSERT; 0: one after the other"),
    REAL_TIME: (
        "false",
        "true: a streaming INSERT runs in Spark's real-time mode; the interval is then that between checkpoints",
    ),
    PIPELINE_NAME: ("", "the name of the next streaming INSERT, and of its checkpoint; default: the table's"),
    DML_SYNC: ("false", "true: a streaming INSERT returns when its stream has ended; false: as soon as it runs"),
}
"""Default and meaning of the session's own keys."""


@dataclass
class SessionSettings:
    """Settings of one session; Spark's settings are stored in the Spark session."""

    own: dict[str, str] = field(default_factory=dict)
    table_options: dict[str, str] = field(default_factory=dict)

    @property
    def runtime_mode(self) -> RuntimeMode:
        """The runtime mode; default: batch."""
        return RuntimeMode(self.own.get(RUNTIME_MODE, RuntimeMode.BATCH))

    def value(self, key: str) -> str:
        """Return one of the session's own settings, or its default."""
        return self.own.get(key, OWN_SETTINGS[key][0])

    @property
    def waits_for_streams(self) -> bool:
        """Whether a streaming INSERT returns only when its stream has ended."""
        return parse_boolean(self.value(DML_SYNC))

    @property
    def is_real_time(self) -> bool:
        """Whether a streaming INSERT runs in Spark's real-time mode."""
        return parse_boolean(self.value(REAL_TIME))

    @property
    def trigger_seconds(self) -> float:
        """The interval between micro-batches in seconds; 0: no pause."""
        return parse_millis(self.value(CHECKPOINT_INTERVAL)) / 1000

    def set(self, key: str, value: str, spark: SparkSession) -> None:
        """Set one setting; ``InvalidInputError`` for an unknown key or an invalid value."""
        if key.startswith(SPARK_PREFIX):
            spark.conf.set(key, value)
        elif key.startswith(SESSION_PREFIX):
            self.table_options[canonical_key(key)] = _checked_option(key, value)
        elif key in OWN_SETTINGS:
            self.own[key] = _checked_setting(key, value)
        else:
            raise _unknown(key)

    def reset(self, key: str | None, spark: SparkSession) -> None:
        """Reset one setting to its default, or with ``key`` None all except Spark's."""
        if key is None:
            self.own.clear()
            self.table_options.clear()
        elif key.startswith(SPARK_PREFIX):
            spark.conf.unset(key)
        elif key.startswith(SESSION_PREFIX):
            self.table_options.pop(canonical_key(key), None)
        elif key in OWN_SETTINGS:
            self.own.pop(key, None)
        else:
            raise _unknown(key)

    def shown(self, key: str | None, spark: SparkSession) -> list[tuple[str, str]]:
        """Return one setting, or with ``key`` None all except Spark's, as (key, value); secrets are masked."""
        if key is not None and key.startswith(SPARK_PREFIX):
            return list(masked({key: _of_spark(key, spark)}).items())
        own = {name: self.value(name) for name in OWN_SETTINGS}
        options = {f"{SESSION_PREFIX}{name}": value for name, value in masked(self.table_options).items()}
        if key is None:
            return sorted({**own, **options}.items())
        if key.startswith(SESSION_PREFIX):
            return [(key, options.get(f"{SESSION_PREFIX}{canonical_key(key)}", ""))]
        if key not in own:
            raise _unknown(key)
        return [(key, own[key])]


def _of_spark(key: str, spark: SparkSession) -> str:
    """Return Spark's value of a setting or its default; empty if it has neither."""
    try:
        return spark.conf.get(key) or ""
    except PySparkException:
        return ""


def _checked_option(key: str, value: str) -> str:
    refuse_secret(key, value, "setting", "set it on the catalog (the connection), because the session would show it")
    refuse_unknown_options((key,))
    refuse_definition_options("session", (key,))
    TableOptions.parse({canonical_key(key): value})
    return value


_PARSERS: Mapping[str, Callable[[str], object]] = {
    CHECKPOINT_INTERVAL: parse_millis,
    DML_SYNC: parse_boolean,
    REAL_TIME: parse_boolean,
}


def _checked_setting(key: str, value: str) -> str:
    if key == RUNTIME_MODE:
        try:
            return RuntimeMode(value.lower())
        except ValueError as error:
            message = f"setting {key} = {value!r}{did_you_mean(value, [str(each) for each in RuntimeMode])}"
            raise InvalidInputError(message) from error
    parse = _PARSERS.get(key)
    if parse is not None:
        try:
            parse(value)
        except ValueError as error:
            message = f"setting {key} = {value!r}; {error}"
            raise InvalidInputError(message) from error
    return value


def _unknown(key: str) -> InvalidInputError:
    near = nearest(key, [*OWN_SETTINGS, *(f"{SESSION_PREFIX}{each}" for each in option_keys())])
    hint = (
        f"; did you mean {near!r}?"
        if near is not None
        else (f"; there are {', '.join(OWN_SETTINGS)}, {SESSION_PREFIX}<option of a table> and {SPARK_PREFIX}<Spark's>")
    )
    return InvalidInputError(f"unknown setting {key!r}{hint}")


def option_keys() -> list[str]:
    """Return the keys of all table options, sorted."""
    return sorted(each.metadata["key"] for each in fields(TableOptions) if "key" in each.metadata)
