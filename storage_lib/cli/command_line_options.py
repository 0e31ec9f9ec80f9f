"""Catalog options from the command line, a file and the environment; secrets only from the file or the environment.

Every user of the machine can read the command line of a process, and a shell keeps it in its history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from storage_lib.errors import InvalidInputError

OPTIONS_FILE_VARIABLE = "DYNAMIC_TABLE_OPTIONS_FILE"
OPTIONS_VARIABLE = "DYNAMIC_TABLE_OPTIONS"


def parsed_options(texts: Sequence[str], what: str = "--option") -> dict[str, str]:
    """Parse ``key=value`` texts of the command line; raises ``InvalidInputError`` for a secret."""
    if not texts:
        return {}  # --help must not wait for imports
    from storage_lib.schema.options.secret_refusal import refuse_secret

    parsed = parsed_pairs(texts, what)
    for key, value in parsed.items():
        remedy = (
            "other users of this machine can read a command line; put it into a file that only you can read, and pass "
            f"that with --options-file or {OPTIONS_FILE_VARIABLE}"
        )
        refuse_secret(key, value, what, remedy)
    return parsed


def parsed_pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    """Parse ``key=value`` texts of the command line; raises ``InvalidInputError`` for another form."""
    from storage_lib.schema.options.secret_text import without_password

    parsed: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            message = f"{what} {without_password(text)!r} is not of the form key=value"
            raise InvalidInputError(message)
        parsed[key.strip()] = value
    return parsed


def options_of_file(path: Path) -> dict[str, str]:
    """Read the options of a file: a JSON object, or lines of ``key=value`` and comments after ``#``.

    Raises ``InvalidInputError`` if other users may read or write the file, or if it has neither form. The message
    contains no value.
    """
    from storage_lib.io.local.private_text import read_private_text

    text = read_private_text(path, "options file")
    return _of_json(text, f"options file {path}") if text.lstrip().startswith("{") else _of_lines(text, path)


def options_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options in the variable ``DYNAMIC_TABLE_OPTIONS``, a JSON object; empty if it is not set."""
    text = environment.get(OPTIONS_VARIABLE)
    return _of_json(text, f"the variable {OPTIONS_VARIABLE}") if text else {}


def _of_json(text: str, what: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError as error:
        # The chained error would contain the whole text, which may hold secrets.
        message = f"{what} is not JSON: {error}"
        raise InvalidInputError(message) from None
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        message = f'{what} has to be a JSON object of strings, such as {{"log.kafka.sasl.plain.password": "..."}}'
        raise InvalidInputError(message)
    return {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in value.items()}


def _of_lines(text: str, path: Path) -> dict[str, str]:
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            message = f"options file {path}, line {number}: write key=value, or JSON"
            raise InvalidInputError(message)
        options[key.strip()] = value.strip()
    return options
