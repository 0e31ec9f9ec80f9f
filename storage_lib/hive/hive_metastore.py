"""Client of a Hive metastore's thrift interface; maps transport failures to ``UnavailableError``.

Each call opens a connection of its own, so that threads and forked processes share none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import MetaException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from storage_lib.errors import CommitOutcomeUnknownError, InvalidInputError, UnavailableError

_PORT = 9083
_Answer = TypeVar("_Answer")


class HiveMetastore:
    """The metastore at an address (``thrift://host:port``; of several, comma-separated, the first that answers).

    Thread-safe. Raises ``InvalidInputError`` for a missing or invalid address.
    """

    def __init__(self, addresses: str, *, option: str, timeout_seconds: float = 60) -> None:
        """``option`` is the option that has the addresses, for messages; ``timeout_seconds`` is that of each answer."""
        self._timeout_ms = int(timeout_seconds * 1000)
        self._places = [_place(each, option) for each in addresses.split(",") if each.strip()]
        if not self._places:
            message = f"a Hive metastore needs option {option}, its address, such as thrift://host:{_PORT}"
            raise InvalidInputError(message)
        self.shown = ", ".join(f"thrift://{host}:{port}" for host, port in self._places)

    def ask(self, what: str, act: Callable[[Any], _Answer]) -> _Answer:
        """Return the answer of a call that changes nothing or may be repeated; ``what`` is for messages.

        Raises ``UnavailableError`` for outages; other exceptions of the metastore pass through. This is a function
        because those exceptions can't be raised through a context manager.
        """
        transport = self._connected()
        try:
            return act(ThriftHiveMetastore.Client(TBinaryProtocol(transport)))
        except (TTransportException, OSError) as error:
            raise self._outage(what, error) from error
        except (MetaException, TApplicationException) as error:
            raise self._failure(what, error) from error
        finally:
            transport.close()

    def tell(self, what: str, act: Callable[[Any], _Answer]) -> _Answer:
        """Make a change, like ``ask``. Raises ``CommitOutcomeUnknownError`` if the answer was lost."""
        transport = self._connected()
        try:
            return act(ThriftHiveMetastore.Client(TBinaryProtocol(transport)))
        except (TTransportException, TApplicationException, OSError) as error:
            message = (
                f"unknown outcome: no answer whether the metastore at {self.shown} did {what}: {_first_line(error)}"
            )
            raise CommitOutcomeUnknownError(message) from error
        except MetaException as error:
            raise self._failure(what, error) from error
        finally:
            transport.close()

    def _connected(self) -> TBufferedTransport:
        """Connect to the first address that answers."""
        refused: Exception | None = None
        for host, port in self._places:
            socket = TSocket(host, port)
            socket.setTimeout(self._timeout_ms)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except TTransportException as error:
                refused = error
                continue
            return transport
        raise self._outage("connect", refused or TException("no place")) from refused

    def _outage(self, what: str, error: Exception) -> UnavailableError:
        return UnavailableError(f"the metastore at {self.shown} does not answer ({what}): {_first_line(error)}")

    def _failure(self, what: str, error: Exception) -> UnavailableError:
        # A metastore reports both its own outages and what it refuses so.
        return UnavailableError(f"the metastore at {self.shown} could not {what}: {_first_line(error)}")


def _place(uri: str, option: str) -> tuple[str, int]:
    parts = urlsplit(uri.strip())
    try:
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, _PORT
    if parts.scheme != "thrift" or host is None:
        shown = uri.rpartition("@")[2]
        message = f"option {option} is {shown!r}; for a metastore it has to be thrift://host:port"
        raise InvalidInputError(message)
    return host, port


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
