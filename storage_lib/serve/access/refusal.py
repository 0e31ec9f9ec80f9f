"""Why a request is refused. Each catalog gives these reasons the names and codes of its own protocol."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """A reason, with the HTTP status that both protocols give it."""

    BAD_REQUEST = 400
    UNAUTHENTICATED = 401
    FORBIDDEN = 403
    NO_DATABASE = 4041
    NO_TABLE = 4042
    NO_SUCH_PATH = 4043
    NO_SNAPSHOT = 4044
    NO_TAG = 4045
    NO_COLUMN = 4046
    NO_BRANCH = 4047
    WRONG_METHOD = 405
    DATABASE_EXISTS = 4091
    TABLE_EXISTS = 4092
    DATABASE_NOT_EMPTY = 4093
    CONFLICT = 4094
    TAG_EXISTS = 4095
    BRANCH_EXISTS = 4096
    BODY_TOO_LARGE = 413
    INTERNAL = 500
    NOT_IMPLEMENTED = 501
    UNAVAILABLE = 503

    @property
    def status(self) -> int:
        """The HTTP status; some reasons share one."""
        return self.value if self.value < 1000 else self.value // 10


class RefusedRequestError(Exception):
    """A request that is refused. ``message`` is for the client: without paths, and without names it may not see."""

    def __init__(self, refusal: Refusal, message: str, *, resource: str = "") -> None:
        """``resource`` is the name of the database or table that the refusal is about."""
        super().__init__(message)
        self.refusal = refusal
        self.message = message
        self.resource = resource
