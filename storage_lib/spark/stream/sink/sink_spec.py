"""The specification of a streaming sink: one JSON file, written by its launcher. Does not import pyspark."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.known_options import unknown_option

SOURCE_KINDS = ("debezium_json", "dynamic_table")
OUTPUT_MODES = ("append", "update", "complete")
_OF_A_TABLE = (
    "log.scan",
    "log.scan.timestamp-millis",
    "scan.normalize",
    "scan.normalize.state-directory",
    "scan.on-untracked",
    "source",
)
_OF_SERVERS = re.compile(r"kafka|registry|log\.properties", re.IGNORECASE)
_OF_A_CONNECTION = re.compile(r"bootstrap|security|sasl|ssl|url|proxy", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSource:
    """Source of the rows.

    ``kind`` is ``debezium_json`` (an external CDC topic; ``name`` is the topic) or ``dynamic_table`` (``name`` is
    ``db.table`` in the sink's warehouse). ``schema`` is Spark DDL (``id BIGINT, ...``) of a topic's columns; None: the
    columns of the target table. ``options`` are read options of the source.
    """

    kind: str
    name: str
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCheck:
    """Check of the new rows of a topic: ``function`` (``module:name``) makes it of ``given``, plain data.

    The sink's Python has to have the module.
    """

    function: str
    given: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec:
    """One streaming query from ``source`` into ``table``.

    ``catalog_options`` are those of ``open_catalog``; options that must not be stored on disk are in
    ``secret_options``, which map an option to the environment variable with its value. ``select`` are Spark SQL
    expressions over the source's columns (empty: all columns). With ``trigger_seconds`` 0, micro-batches run without a
    pause. ``stop_path``: the sink stops when this file exists (None: only by signal). ``available_now``: the sink stops
    after the data that exists at its start. ``check``: of the rows of a topic that is applied to the table.
    """

    warehouse: str
    table: str
    source: SinkSource
    checkpoint_location: str
    heartbeat_path: str
    stop_path: str | None = None
    catalog_options: Mapping[str, str] = field(default_factory=dict)
    secret_options: Mapping[str, str] = field(default_factory=dict)
    write_options: Mapping[str, str] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    output_mode: str = "append"
    trigger_seconds: float = 0.0
    max_rows_per_trigger: int | None = None
    available_now: bool = False
    master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    query_name: str | None = None
    check: SinkCheck | None = None

    def __post_init__(self) -> None:
        """Refuse values that would otherwise fail later, in another process."""
        if self.source.kind not in SOURCE_KINDS:
            message = f"unknown source kind {self.source.kind!r}; use one of {', '.join(SOURCE_KINDS)}"
            raise InvalidInputError(message)
        for name in ("warehouse", "table", "checkpoint_location", "heartbeat_path"):
            if not getattr(self, name):
                message = f"the sink's {name} is empty; set it"
                raise InvalidInputError(message)
        if self.trigger_seconds < 0:
            message = f"trigger_seconds is {self.trigger_seconds}; use 0 (as fast as possible) or more"
            raise InvalidInputError(message)
        if self.output_mode not in OUTPUT_MODES:
            message = f"unknown output_mode {self.output_mode!r}; use one of {', '.join(OUTPUT_MODES)}"
            raise InvalidInputError(message)
        if self.max_rows_per_trigger is not None and self.max_rows_per_trigger < 1:
            message = f"max_rows_per_trigger is {self.max_rows_per_trigger}; use 1 or more, or None for no limit"
            raise InvalidInputError(message)
        if self.source.kind == "dynamic_table":
            for key in self.source.options:
                if key not in _OF_A_TABLE:
                    raise unknown_option(key, f"source {self.source.name}", _OF_A_TABLE)
        refuse_other_servers(self.source.options, self.secret_options)

    def to_json(self) -> str:
        """Return the specification as one JSON object with sorted keys."""
        value = asdict(self)
        if self.check is None:
            del value["check"]  # a running sink of an older release has the same specification
        return json.dumps(value, sort_keys=True, indent=2)

    @classmethod
    def from_json(cls, text: str) -> SinkSpec:
        """Parse the result of ``to_json``; ``InvalidInputError`` for unknown or missing keys."""
        try:
            value = json.loads(text)
            if not isinstance(value, dict):
                message = f"expected a JSON object, got a {type(value).__name__}"
                raise TypeError(message)  # noqa: TRY301  the handler names the specification
            value["source"] = SinkSource(**_known(SinkSource, value["source"]))
            if value.get("check") is not None:
                value["check"] = SinkCheck(**_known(SinkCheck, value["check"]))
            value["select"] = _expressions(value.get("select", ()))
            return cls(**_known(cls, value))
        except (ValueError, TypeError, KeyError) as error:
            message = f"invalid sink specification: {error}"
            raise InvalidInputError(message) from error

    def resolved_catalog_options(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the catalog's options, with the secrets read from ``environment``, the process's variables.

        Raises ``InvalidInputError`` naming a variable that is not set.
        """
        options = dict(self.catalog_options)
        for option, variable in self.secret_options.items():
            if variable not in environment:
                message = f"option {option} should come from the environment variable {variable}, which is not set"
                raise InvalidInputError(message)
            options[option] = environment[variable]
        return options


def refuse_other_servers(options: Mapping[str, str], secret_keys: Collection[str]) -> None:
    """Refuse options of a source or table that would send the connection's credentials to other servers.

    ``secret_keys`` are the secret options of the connection. Raises ``InvalidInputError`` naming the option.
    """
    if not any(_OF_SERVERS.search(key) for key in secret_keys):
        return
    for key in options:
        if _OF_SERVERS.search(key) and _OF_A_CONNECTION.search(key):
            message = (
                f"option {key} says how to reach other servers, but the connection's credentials go only "
                "to the connection's own servers, as the connection says; use another connection for them"
            )
            raise InvalidInputError(message)


def _expressions(select: object) -> tuple[str, ...]:
    if not isinstance(select, list | tuple):
        message = f"select is {select!r}; write a list of expressions: [{select!r}]"
        raise TypeError(message)
    return tuple(select)


def _known(of: type, value: Mapping[str, Any]) -> dict[str, Any]:
    names = [each.name for each in fields(of)]
    unknown = [key for key in value if key not in names]
    if unknown:
        message = f"unknown key {unknown[0]!r}; known are {', '.join(names)}"
        raise ValueError(message)
    return dict(value)
