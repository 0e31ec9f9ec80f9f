"""Writer in its own process that crashes, or freezes, at its k-th request to the brokers.

The processes are forked from a server that has already imported everything, so that each costs milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from storage_lib import StorageError, open_catalog
from tests.support.orders_table import NAME
from tests.support.request_trap import Moment, request_trap
from tests.support.table_writing_process import own_rows

USER = "mortal"
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["storage_lib", "kafka", "tests.support.mortal_writer"])


class Place(Protocol):
    """Location of the table."""

    warehouse: str
    servers: str


def started(
    place: Place, number: int, *, at: int, moment: Moment, stroke: signal.Signals = signal.SIGKILL
) -> tuple[BaseProcess, Connection]:
    """Commit ``number`` of the mortal writer, in a process that signals ``stroke`` to itself at request ``at``.

    The connection receives the number of requests, or the name of the error, if the process survives.
    """
    ours, theirs = _SERVER.Pipe()
    arguments = (theirs, place.warehouse, place.servers, number, at, str(moment), int(stroke))
    process = _SERVER.Process(target=_write, args=arguments, daemon=True)
    process.start()
    theirs.close()
    return process, ours


def is_frozen(process: BaseProcess) -> bool:
    """Return whether SIGSTOP has taken effect on the process; not if it has ended."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"


def _write(say: Connection, warehouse: str, servers: str, number: int, at: int, moment: str, stroke: int) -> None:
    table = open_catalog(warehouse, {"log.kafka.bootstrap.servers": servers}).load_table(NAME)
    with request_trap(at=at, moment=Moment(moment), act=lambda: os.kill(os.getpid(), stroke)) as sent:
        try:
            table.append(own_rows("1", number), commit_user=USER, commit_identifier=number)
        except StorageError as error:
            say.send(type(error).__name__)
        else:
            say.send(len(sent))
