"""The specification of a refresher: one JSON file, written by its launcher. Does not import pyspark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from storage_lib.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class RefresherSpec:
    """One process that keeps materialized tables fresh.

    ``tables`` are ``database.table``; empty: all of the catalog, also later ones. ``catalog_options`` are those of
    ``open_catalog``; ``secret_options`` map an option to the environment variable with its value. The process writes
    its state to ``heartbeat_path`` and ends when ``stop_path`` exists.
    """

    warehouse: str
    heartbeat_path: str
    stop_path: str
    tables: tuple[str, ...] = ()
    catalog_options: Mapping[str, str] = field(default_factory=dict)
    secret_options: Mapping[str, str] = field(default_factory=dict)
    poll_seconds: float = 1.0
    master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values that would otherwise fail later, in another process."""
        for name in ("warehouse", "heartbeat_path", "stop_path"):
            if not getattr(self, name):
                message = f"the refresher's {name} is empty; set it"
                raise InvalidInputError(message)
        if self.poll_seconds <= 0:
            message = f"poll_seconds is {self.poll_seconds}; use more than 0"
            raise InvalidInputError(message)

    def to_json(self) -> str:
        """Return the specification as one JSON object with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True, indent=2)

    @classmethod
    def from_json(cls, text: str) -> RefresherSpec:
        """Parse the result of ``to_json``; ``InvalidInputError`` for unknown or missing keys."""
        try:
            value = json.loads(text)
            unknown = sorted(set(value) - {each.name for each in fields(cls)})
            if unknown:
                message = f"unknown key {unknown[0]!r}"
                raise ValueError(message)  # noqa: TRY301  the handler names the specification
            return cls(**{**value, "tables": tuple(value.get("tables", ()))})
        except (ValueError, TypeError) as error:
            message = f"invalid refresher specification: {error}"
            raise InvalidInputError(message) from error
