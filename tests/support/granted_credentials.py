"""A token service in this process: it gives the store's own keys, and notes what it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from storage_lib.errors import UnavailableError
from storage_lib.io.environment import Clock

if TYPE_CHECKING:
    from storage_lib.serve.vending.store_credentials import StoreCredentials


class Asked(NamedTuple):
    """A request: who for, what they may do, and for how long."""

    session: str
    policy: str
    seconds: int


def _set() -> Event:
    event = Event()
    event.set()
    return event


@dataclass
class GrantedCredentials:
    """A ``TokenService`` whose credentials are ``options``'s keys and a number; while it ``is_down``, it gives none.

    It answers once ``answers`` is set.
    """

    options: Mapping[str, str]
    clock: Clock
    asked: list[Asked] = field(default_factory=list)
    is_down: bool = False
    partition: str = "aws"
    answers: Event = field(default_factory=_set)

    def credentials(self, *, session: str, policy: str, seconds: int) -> StoreCredentials:
        from storage_lib.serve.vending.store_credentials import StoreCredentials

        self.asked.append(Asked(session, policy, seconds))
        number = len(self.asked)
        assert self.answers.wait(60)
        if self.is_down:
            raise UnavailableError("the token service of s3://lake does not answer")
        return StoreCredentials(
            access_key=self.options["s3.access-key"],
            secret_key=self.options["s3.secret-key"],
            session_token=f"token-{number}",
            expires_millis=self.clock.now_millis() + seconds * 1000,
        )
