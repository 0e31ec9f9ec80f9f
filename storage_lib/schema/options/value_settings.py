"""Settings of a Spark session on which the values of a query depend, stored with queries whose answers are kept.

A stored text is a JSON object of the settings that differ from the usual ones, and of the time zone, which has none. A
setting that it does not name has its usual value, also one that is added to these lists later. No other setting can be
stored, since who refreshes a table applies them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = [
    "TIME_ZONE",
    "USUAL",
    "differing",
    "parse_settings",
    "settings_text",
    "unusual_reading",
    "unusual_value",
]

TIME_ZONE = "spark.sql.session.timeZone"
_OF_TEXT = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.legacy.bangEqualsNot": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""By which a text has another meaning: only Spark reads it then, as a whole."""
USUAL = {
    **_OF_TEXT,
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.legacy.allowHashOnMapType": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.disableMapKeyNormalization": "false",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    "spark.sql.legacy.integerGroupingId": "false",
    "spark.sql.legacy.javaCharsets": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.lpadRpadAlwaysReturnString": "false",
    "spark.sql.legacy.negativeIndexInArrayInsert": "false",
    "spark.sql.legacy.percentileDiscCalculation": "false",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.truncateForEmptyRegexSplit": "false",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.storeAssignmentPolicy": "ANSI",
}
"""The settings and their usual values, which are Spark's defaults."""

Settings = tuple[tuple[str, str], ...]


def differing(values: Mapping[str, str]) -> Settings:
    """Return those of ``values`` that are stored, sorted: unusual ones, and the time zone."""
    return tuple(
        (name, values[name])
        for name in sorted(values)
        if name == TIME_ZONE or (name in USUAL and not _is_usual(name, values[name]))
    )


def settings_text(settings: Settings) -> str:
    """Return settings as they are stored."""
    return json.dumps(dict(settings))


def parse_settings(text: str) -> Settings:
    """Parse a stored text. Raises ``ValueError`` for another one, and for a setting that can't be stored."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        message = "it has to be a JSON object of settings with texts as values"
        raise ValueError(message)
    other = next((name for name in found if name != TIME_ZONE and name not in USUAL), None)
    if other is not None:
        message = f"{other} is not a setting of values that this version knows"
        raise ValueError(message)
    return tuple(sorted(found.items()))


def unusual_value(settings: Settings) -> str | None:
    """Return the first setting by which expressions may have other values than usual, except for the time zone."""
    return next((f"{name} is not {USUAL[name]}" for name, _ in settings if name in USUAL), None)


def unusual_reading(settings: Settings) -> str | None:
    """Return the first setting by which the text of a query may have another meaning than usual."""
    return next((f"{name} is not {USUAL[name]}" for name, _ in settings if name in _OF_TEXT), None)


def _is_usual(name: str, value: str) -> bool:
    return value.lower() == USUAL[name].lower()
