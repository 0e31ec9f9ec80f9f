"""Options of the warehouse's store that clients get, under the names that they know."""

from __future__ import annotations

from collections.abc import Mapping


def passed_on(options: Mapping[str, str], names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the values of ``options`` that ``names`` lists, each under all of its names there."""
    return {name: options[option] for option, others in names.items() if option in options for name in others}
