"""Checks of an operator's arguments after template rendering.

A DAG that does not render to native objects turns every value into text: ``"False"``, which is true in Python, and
``"['a']"``, which has five characters. Each function returns the value, or raises an InvalidInputError that names the
argument and the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "REMEDY",
    "checked_choice",
    "checked_count",
    "checked_flag",
    "checked_mapping",
    "checked_moment",
    "checked_names",
    "checked_number",
    "checked_options",
    "checked_text",
    "is_nothing",
]

# Values of an omitted argument, and the text to which a template renders an undefined parameter.
NOTHING = (None, "", "None")
REMEDY = "A template renders to such a value in a DAG with render_template_as_native_obj=True."


def checked_flag(value: object, argument: str) -> bool:
    """Return a boolean; accepts its text in any letter case, but not an undefined value."""
    if isinstance(value, bool):
        return value
    if (word := str(value).strip().lower()) in ("true", "false"):
        return word == "true"
    raise _refusal(value, argument, "true or false")


def is_nothing(value: object) -> bool:
    """Return whether an optional argument was omitted, or rendered from an undefined value."""
    return value in NOTHING


def checked_count(value: object, argument: str, *, least: int = 0) -> int:
    """Return a whole number of at least ``least``; accepts its text."""
    number = checked_number(value, argument, least=least)
    if not number.is_integer():
        raise _refusal(value, argument, f"a whole number of at least {least}")
    return int(number)


def checked_number(value: object, argument: str, *, least: float = 0) -> float:
    """Return a number of at least ``least``; accepts its text."""
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        raise _refusal(value, argument, f"a number of at least {least}")
    return number


def checked_text(value: object, argument: str) -> str:
    """Return text that is not empty."""
    if isinstance(value, str) and not is_nothing(value.strip()):
        return value
    raise _refusal(value, argument, "text")


def checked_moment(value: object, argument: str) -> int:
    """Return the epoch milliseconds of a datetime with a time zone, or of its ISO text."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _refusal(value, argument, "a time with its zone like 2024-05-14T12:00:00+00:00")
    return int(moment.timestamp() * 1000)


def checked_choice(value: object, argument: str, choices: Sequence[str]) -> None:
    """Raise InvalidInputError unless the value is one of ``choices``."""
    if value not in choices:
        raise _refusal(value, argument, f"one of {', '.join(choices)}")


def checked_names(value: object, argument: str) -> tuple[str, ...]:
    """Return a list of names as a tuple; an omitted list is empty."""
    if value is None:
        return ()
    if isinstance(value, list | tuple) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    raise _refusal(value, argument, "a list like ['a', 'b']")


def checked_mapping(value: object, argument: str) -> dict[str, Any]:
    """Return a mapping; an omitted mapping is empty."""
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(isinstance(key, str) and key for key in value):
        return dict(value)
    raise _refusal(value, argument, "a mapping like {'name': 'value'}")


def checked_options(value: object, argument: str) -> dict[str, str]:
    """Return options with their values as text, spelled as the library does; a value of None is an error."""
    options = checked_mapping(value, argument)
    return {key: _option_text(text, f"{argument}[{key!r}]") for key, text in options.items()}


def _option_text(value: object, argument: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise _refusal(value, argument, "text, a number, true or false")


def _refusal(value: object, argument: str, wanted: str) -> Exception:
    from storage_lib.errors import InvalidInputError

    message = f"{argument} is {value!r}; it has to be {wanted}. {REMEDY}"
    return InvalidInputError(message)
