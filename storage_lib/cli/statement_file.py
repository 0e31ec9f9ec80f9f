"""Files of SQL statements, for ``dynamic-table sql -f`` and the shell's ``.read``."""

from __future__ import annotations

from pathlib import Path

from storage_lib.errors import InvalidInputError

__all__ = ["statements_in"]


def statements_in(file: Path) -> str:
    """Return the text of ``file``. Raises ``InvalidInputError`` if it cannot be read or is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read statements from {file}: {error.strerror or error}"
        raise InvalidInputError(message) from error
    except UnicodeDecodeError as error:
        message = f"cannot read statements from {file}: not UTF-8 ({error.reason} at byte {error.start})"
        raise InvalidInputError(message) from error
