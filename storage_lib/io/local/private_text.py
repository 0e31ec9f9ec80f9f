"""Files that hold secrets: read only if no other user of the machine can read or change them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from storage_lib.errors import InvalidInputError


def read_private_text(path: Path, what: str) -> str:
    """Return the text of a file; ``what`` names it in errors, such as "options file".

    Raises ``InvalidInputError`` if other users may read or write it, or if it is not UTF-8 text; ``OSError`` if it
    can't be opened. No message contains a part of the text.
    """
    with path.open("rb") as file:
        held = os.fstat(file.fileno())
        if held.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(held.st_mode) & 0o077:
            message = (
                f"{what} {path} can be read or changed by other users (mode {stat.S_IMODE(held.st_mode):04o}, owner "
                f"{held.st_uid}); restrict it to yourself: chmod 600 {path}"
            )
            raise InvalidInputError(message)
        try:
            return file.read().decode()
        except UnicodeDecodeError as error:
            message = f"{what} {path} is not UTF-8 text"
            raise InvalidInputError(message) from error
