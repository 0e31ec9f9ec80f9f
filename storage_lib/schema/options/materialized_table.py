"""Definition of a materialized table: a query, stored in the table's options, whose answer the table holds.

The options have the names of Paimon and Flink, with values that these can parse: refresh mode AUTO is stored as
``AUTOMATIC``, INCREMENTAL as ``CONTINUOUS``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.value_settings import settings_text

PREFIX = "materialized-table."
QUERY_OPTION = f"{PREFIX}definition-query"
DATABASE_OPTION = f"{PREFIX}definition-database"
SOURCES_OPTION = f"{PREFIX}definition-sources"
FRESHNESS_OPTION = f"{PREFIX}interval-freshness"
FRESHNESS_UNIT_OPTION = f"{PREFIX}interval-freshness.time-unit"
TARGET_LAG_OPTION = f"{PREFIX}target-lag"
LOGICAL_MODE_OPTION = f"{PREFIX}logical-refresh-mode"
MODE_OPTION = f"{PREFIX}refresh-mode"
STATUS_OPTION = f"{PREFIX}refresh-status"
SETTINGS_OPTION = f"{PREFIX}definition-settings"
COLUMNS_OPTION = f"{PREFIX}definition-columns"
CATALOGS_OPTION = f"{PREFIX}definition-catalogs"

_INTERVAL = re.compile(r"(?:INTERVAL\s+)?'?\s*(\d+)\s*'?\s*(SECOND|MINUTE|HOUR|DAY)S?'?", re.IGNORECASE)
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


class RefreshMode(StrEnum):
    """How a materialized table is refreshed. AUTO: incrementally if its query allows it, otherwise in full."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    FULL = "full"


class RefreshStatus(StrEnum):
    """Whether schedulers refresh a materialized table. A refresh on request is always possible."""

    ACTIVATED = "activated"
    SUSPENDED = "suspended"


class TargetLag(StrEnum):
    """A lag that is not a duration. DOWNSTREAM: a table is refreshed before each refresh of a table that reads it."""

    DOWNSTREAM = "downstream"


Freshness: TypeAlias = timedelta | TargetLag
"""When schedulers refresh a materialized table: the longest time that it may lag behind its sources, or DOWNSTREAM."""


class FreshnessUnit(StrEnum):
    """Unit of a stored freshness."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


_SECONDS = {
    FreshnessUnit.DAY: 86_400,
    FreshnessUnit.HOUR: 3_600,
    FreshnessUnit.MINUTE: 60,
    FreshnessUnit.SECOND: 1,
}
_STORED_MODES = {
    RefreshMode.AUTO: "AUTOMATIC",
    RefreshMode.INCREMENTAL: "CONTINUOUS",
    RefreshMode.FULL: "FULL",
}
_MODES = {stored.lower(): mode for mode, stored in _STORED_MODES.items()} | {str(mode): mode for mode in RefreshMode}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOfQuery:
    """A catalog of another format whose tables a query reads by three parts.

    ``options`` are those by which it is opened, except the secret ones, of which ``secrets`` are the names. ``tables``
    are those that the query reads, as ``database.table``.
    """

    name: str
    options: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedTableDefinition:
    """The query of a materialized table, and when it is refreshed.

    ``query`` is a SELECT in Spark's SQL; names without a database refer to ``database``. ``sources`` are the tables
    that it reads, as ``database.table``. ``freshness`` is the longest time that the table may lag behind its sources,
    or DOWNSTREAM; None: it is refreshed on request, or when a source changes. ``settings`` are those of Spark under
    which it is refreshed (``value_settings``); None: those of the session that refreshes it, as in older versions.
    ``columns`` are those of each source that ``*`` stands for, which later ones do not join; None: all of them.
    ``catalogs`` are those of other formats whose tables it reads as well.
    """

    query: str
    database: str
    sources: tuple[str, ...]
    freshness: Freshness | None = None
    refresh_mode: RefreshMode = RefreshMode.AUTO
    status: RefreshStatus = RefreshStatus.ACTIVATED
    settings: tuple[tuple[str, str], ...] | None = None
    columns: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    catalogs: tuple[CatalogOfQuery, ...] = ()

    @property
    def tables_of_catalogs(self) -> tuple[str, ...]:
        """Tables of other formats that the query reads, as ``catalog.database.table``."""
        return tuple(f"{catalog.name}.{table}" for catalog in self.catalogs for table in catalog.tables)

    @property
    def is_refreshed_by_readers(self) -> bool:
        """Whether a refresh of a table that reads this one refreshes this one first, which SUSPEND ends."""
        return self.freshness is TargetLag.DOWNSTREAM and self.status is RefreshStatus.ACTIVATED

    def to_options(self) -> dict[str, str]:
        """Return the definition as options of the table."""
        options = {
            QUERY_OPTION: self.query,
            DATABASE_OPTION: self.database,
            LOGICAL_MODE_OPTION: _STORED_MODES[self.refresh_mode],
            MODE_OPTION: "FULL" if self.refresh_mode is RefreshMode.FULL else "CONTINUOUS",
            STATUS_OPTION: self.status.upper(),
        }
        if self.sources:
            options[SOURCES_OPTION] = ",".join(self.sources)
        if self.settings is not None:
            options[SETTINGS_OPTION] = settings_text(self.settings)
        if self.columns is not None:
            options[COLUMNS_OPTION] = json.dumps(dict(self.columns))
        if self.catalogs:
            options[CATALOGS_OPTION] = catalogs_text(self.catalogs)
        if self.freshness is not None:
            options |= freshness_options(self.freshness)
        return options


def catalogs_text(catalogs: Sequence[CatalogOfQuery]) -> str:
    """Return catalogs of a query as they are stored."""
    stored = {
        each.name: {"options": dict(each.options), "tables": list(each.tables), "withheld": list(each.secrets)}
        for each in catalogs
    }
    return json.dumps(stored)


def parse_catalogs(text: str) -> tuple[CatalogOfQuery, ...]:
    """Parse stored catalogs. Raises ``ValueError`` for another text."""
    try:
        return tuple(
            CatalogOfQuery(
                name=name,
                options=tuple((str(key), str(value)) for key, value in each["options"].items()),
                secrets=tuple(map(str, each["withheld"])),
                tables=tuple(map(str, each["tables"])),
            )
            for name, each in json.loads(text).items()
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        message = "it has to be a JSON object of catalogs with options, tables and withheld"
        raise ValueError(message) from None


def parse_source_columns(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parse stored columns of sources. Raises ``ValueError`` for another text."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    lists = found.values() if isinstance(found, dict) else [None]
    if not isinstance(found, dict) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists
    ):
        message = "it has to be a JSON object of lists of columns"
        raise ValueError(message)
    return tuple((source, tuple(names)) for source, names in found.items())


def parse_refresh_mode(text: str) -> RefreshMode:
    """Parse a stored or a user's refresh mode. Raises ``ValueError`` for another word."""
    mode = _MODES.get(text.strip().lower())
    if mode is None:
        message = f"it has to be one of {', '.join(_MODES)}"
        raise ValueError(message)
    return mode


def parse_refresh_status(text: str) -> RefreshStatus:
    """Parse a status; Flink's ``INITIALIZING`` counts as activated. Raises ``ValueError`` for another word."""
    word = text.strip().lower()
    if word == "initializing":
        return RefreshStatus.ACTIVATED
    try:
        return RefreshStatus(word)
    except ValueError:
        message = f"it has to be one of {', '.join(RefreshStatus)}"
        raise ValueError(message) from None


def parse_freshness(given: timedelta | str | None) -> Freshness | None:
    """Return a freshness as a duration, or DOWNSTREAM; None stays None.

    Text is ISO 8601 (``PT5M``), an interval (``INTERVAL '5' MINUTE``, ``5 minutes``) or ``DOWNSTREAM``. Raises
    ``InvalidInputError`` for other text, and for a duration that is not a positive number of whole seconds.
    """
    if given is None:
        return None
    if isinstance(given, str) and given.strip().lower() == TargetLag.DOWNSTREAM:
        return TargetLag.DOWNSTREAM
    found = given if isinstance(given, timedelta) else _duration(given)
    if found is None or found <= timedelta(0) or found.microseconds:
        message = (
            f"invalid freshness {given!r}; use a positive number of whole seconds: a timedelta, INTERVAL '5' MINUTE, "
            "PT5M, or DOWNSTREAM"
        )
        raise InvalidInputError(message)
    return found


def freshness_options(freshness: Freshness) -> dict[str, str]:
    """Return a freshness as options, a duration in the largest unit of which it is a multiple."""
    if isinstance(freshness, TargetLag):
        return {TARGET_LAG_OPTION: freshness.upper()}
    seconds = round(freshness.total_seconds())
    unit = next(unit for unit, size in _SECONDS.items() if seconds % size == 0)
    return {FRESHNESS_OPTION: str(seconds // _SECONDS[unit]), FRESHNESS_UNIT_OPTION: unit.upper()}


def stored_freshness(number: int | None, unit: FreshnessUnit, target_lag: TargetLag | None) -> Freshness | None:
    """Return the freshness that three options store; None without a number and a lag."""
    if target_lag is not None:
        return target_lag
    return None if number is None else timedelta(seconds=number * _SECONDS[unit])


def _duration(text: str) -> timedelta | None:
    stripped = text.strip()
    if interval := _INTERVAL.fullmatch(stripped):
        return timedelta(seconds=int(interval[1]) * _SECONDS[FreshnessUnit(interval[2].lower())])
    if (iso := _ISO.fullmatch(stripped.upper())) and any(iso.groups()):
        days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return None
