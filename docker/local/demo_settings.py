"""Settings of `make demo`, and checks that its ports and its folder are free."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from local_process import LOOPBACK, is_free

__all__ = ["FIRST_DAY", "DemoError", "Settings", "only_demo"]

FIRST_DAY = date(2013, 1, 1)
DAYS = range(10, 366)
# Only root may open lower ports.
PORTS = range(1024, 65_536)


class DemoError(Exception):
    """The demo can't continue; the text says what to do."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings from the environment."""

    days: int
    airflow_port: int
    kafka_port: int
    exits: bool

    @classmethod
    def from_environment(cls) -> Settings:
        """Read ``DAYS``, ``AIRFLOW_PORT``, ``KAFKA_PORT`` and ``DEMO_EXIT``; a `DemoError` names an invalid value."""
        settings = cls(
            days=_number("DAYS", 31, DAYS),
            airflow_port=_number("AIRFLOW_PORT", 8080, PORTS),
            kafka_port=_number("KAFKA_PORT", 19092, PORTS),
            exits=os.environ.get("DEMO_EXIT", "0") not in ("", "0"),
        )
        if settings.airflow_port == settings.kafka_port:
            message = f"AIRFLOW_PORT and KAFKA_PORT are both {settings.kafka_port}; each needs one of its own"
            raise DemoError(message)
        return settings

    @property
    def last_day(self) -> date:
        """Last day to replay."""
        return FIRST_DAY + timedelta(days=self.days - 1)

    def refuse_taken_ports(self) -> None:
        """Raise a `DemoError` that names a port in use."""
        for name, port in (("AIRFLOW_PORT", self.airflow_port), ("KAFKA_PORT", self.kafka_port)):
            if not is_free(port):
                message = (
                    f"port {port} of {LOOPBACK} is in use; stop the program that listens there, or choose another: "
                    f"make demo {name}={port + 1 if port + 1 in PORTS else port - 1}"
                )
                raise DemoError(message)


@contextmanager
def only_demo(home: Path) -> Iterator[None]:
    """Lock ``home`` for one demo at a time: a second one would stop the processes of the first.

    The lock file is next to the folder, which a demo empties at its start; the lock ends with the process.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("a+") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            turn.seek(0)
            message = (
                f"another demo runs in {home} (process {turn.read().strip() or 'unknown'}); "
                "wait until it has ended, or end it with Ctrl-C where it runs"
            )
            raise DemoError(message) from error
        turn.truncate(0)
        turn.write(str(os.getpid()))
        turn.flush()
        yield


def _number(name: str, default: int, choices: range) -> int:
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) not in choices:
        message = f"{name}={text}: choose a whole number from {choices[0]} to {choices[-1]}"
        raise DemoError(message)
    return int(text)
