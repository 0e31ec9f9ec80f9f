"""Pages of sorted names. A page's token is its last name, so that names may come and go between two pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from storage_lib.serve.access.refusal import Refusal, RefusedRequestError


def page_of(names: Iterable[str], size: str | None, token: str | None) -> tuple[list[str], str | None]:
    """Return the names of a page, and the token of the next one (None: there is none).

    Without a size, all names that follow. Raises ``RefusedRequestError`` for a size that is not a number above 0, and
    for a token that this function did not return.
    """
    after = _decoded(token) if token else ""
    following = sorted(each for each in names if each > after)
    if size is None:
        return following, None
    if not (size.isascii() and size.isdigit() and int(size[:9]) > 0):
        message = "the size of a page has to be a number above 0"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    page = following[: int(size[:9])]
    return page, _encoded(page[-1]) if len(page) < len(following) else None


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _decoded(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        message = "the token of a page is not one that this server has returned"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message) from error
