"""Servers and directories that options of a form or a template may name.

A broker, a schema registry or a directory of data files that a form names would be reached by a worker, from inside its
network and with its rights. So an operator accepts options that reach nothing, those that the connection has as well,
the connection's own servers and warehouse, and what an administrator lists:

    [dynamic_table] servers    broker:9092 or https://registry:8081 or s3://bucket/path, separated by spaces or commas

Options of tables are accepted by name (``options_of_forms``); settings of Kafka's client and of file formats if their
value is a number or a switch: others load code or read files. Unknown options are refused. A test gives every option of
the library an address as its value, so that one that reaches something is noticed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dynamic_table.policies.options_of_forms import ALLOWED, REFUSED
from dynamic_table.sinks.sink_settings import secrets_apart
from dynamic_table.versions.sdk_conf import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from dynamic_table.hook import DynamicTableHook

__all__ = [
    "OPTIONS_OF_A_TOPIC",
    "refuse_options_of_form",
    "refuse_other_servers_of_form",
    "refuse_table_options_of_form",
]

BROKERS = "log.kafka.bootstrap.servers"
REGISTRY = "log.schema-registry.url"
LOCATIONS = ("data-file.external-paths", "file.root-path")
# Options of a client whose words choose neither a server nor a file.
WORDS = frozenset(
    f"log.kafka.{name}"
    for name in ("topic", "acks", "client.id", "compression.type", "group.id", "isolation.level", "security.protocol")
)
NUMBERS = ("log.kafka.", "log.schema-registry.", "avro.", "orc.", "parquet.", "file-index.")
# Options that only describe rows and columns of the table; virtual columns have a check of their own.
DESCRIBING = re.compile(
    r"(fields|watermark|x|user)\..+|column\..+\.(expression|comment|metadata)"
    r"|pk-[a-z-]+\.index\.columns|file-index\.[a-z-]+\.columns",
    re.DOTALL,
)
OPTIONS_OF_A_TOPIC = frozenset(
    {
        "topic",
        "path",  # another name of the topic
        "source",
        "maxrowspertrigger",
        "primary-key",
        "log.scan.offsets",
        "log.scan.offsets-of",
        "column.types",
        "table.merge-engine",
        # How records are read and treated.
        "source.before-image",
        "source.on-truncate",
        "source.on-reject",
        "source.reject-max",
        "source.schema-change",
        "source.key-change",
        "source.skip",
        "source.out-of-range",
        "source.metadata",
        "source.time-precision",
        "debezium.decimal-handling-mode",
        "debezium.time-precision-mode",
        "debezium.binary-handling-mode",
        "debezium.unavailable-value-placeholder",
    }
)
"""Options of an external topic, or of a table that a stream reads, that are not options of tables."""

_NUMBER_OR_SWITCH = re.compile(r"-?\d{1,20}(\.\d{1,20})?|true|false")


def refuse_options_of_form(
    options: Mapping[str, str], hook: DynamicTableHook, *, of_source: Collection[str] = ()
) -> None:
    """Raise InvalidInputError for options that send the connection's secrets elsewhere, or reach another server."""
    from storage_lib.spark.stream.sink.sink_spec import refuse_other_servers

    _, secret, _ = secrets_apart(hook.options, hook.secret_keys)
    refuse_other_servers(options, secret)
    refuse_other_servers_of_form(options, hook, of_source=of_source)


def refuse_table_options_of_form(table: str, options: Mapping[str, str], hook: DynamicTableHook) -> None:
    """Raise InvalidInputError for options that make readers of a new table send credentials or run code."""
    from storage_lib.schema.options.table_options import canonical_key

    refuse_options_of_form(options, hook)
    for given, text in options.items():
        if (key := canonical_key(given)).startswith("column."):
            from storage_lib.sql.definition.virtual_columns import refuse_reaching_out

            refuse_reaching_out(table, {key: text})


def refuse_other_servers_of_form(
    options: Mapping[str, str], hook: DynamicTableHook, *, of_source: Collection[str] = ()
) -> None:
    """Raise InvalidInputError for an option of a table or a topic that reaches a server that is not allowed.

    ``of_source`` are the keys of a topic's own options, which reach nothing. Opens no connection.
    """
    from storage_lib.schema.options.table_options import canonical_key

    own = {canonical_key(key): value for key, value in hook.options.items()}
    for given, text in options.items():
        key = canonical_key(f"log.{given.lower()}" if given.lower().startswith("kafka.") else given.lower())
        if own.get(key) != text and key not in of_source:
            _refuse(given, key, text, own, hook)


def _refuse(given: str, key: str, text: str, own: Mapping[str, str], hook: DynamicTableHook) -> None:
    from storage_lib.catalog.declaration.connection_options import is_option_of_connection
    from storage_lib.schema.options.known_options import unknown_option

    listed = re.split(r"[\s,]+", conf.get("dynamic_table", "servers", fallback="") or "")
    if key == BROKERS:
        known = {*_parts(own.get(BROKERS, "")), *listed}
        _check_each(given, _parts(text), lambda server: server in known)
    elif key == REGISTRY:
        origins = {_origin(url) for url in (*_parts(own.get(REGISTRY, "")), *listed)} - {None}
        _check_each(given, _parts(text), lambda url: _origin(url) in origins)
    elif key in LOCATIONS:
        roots = [_location(root) for root in (hook.warehouse, *_parts(own.get(key, "")), *listed) if root]
        _check_each(given, _parts(text), lambda url: any(_is_below(_location(url), root) for root in roots))
    elif not _reaches_nothing(key, text):
        if key not in REFUSED and not is_option_of_connection(key):
            raise unknown_option(given)
        message = (
            f"option {given} may reach a server, read a file or run code, and is not allowed from a form: set it on "
            "the connection, or create the table in SQL"
        )
        raise _invalid(message)


def _reaches_nothing(key: str, text: str) -> bool:
    if key in WORDS or key in ALLOWED or DESCRIBING.fullmatch(key):
        return True
    return key.startswith(NUMBERS) and _NUMBER_OR_SWITCH.fullmatch(text) is not None


def _check_each(given: str, parts: Iterable[str], is_allowed: Callable[[str], bool]) -> None:
    for part in parts:
        if not is_allowed(part):
            message = (
                f"option {given} names {part}, which is neither the connection's nor in the setting [dynamic_table] "
                "servers, which an administrator sets; leave the option out, or use another connection"
            )
            raise _invalid(message)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL; None for text that is not one, or that holds a login."""
    try:
        parsed = urlsplit(url)
        port = parsed.port
    except ValueError:
        return None
    if parsed.scheme not in ("http", "https") or not parsed.hostname or "@" in parsed.netloc or "\\" in url:
        return None
    return parsed.scheme, parsed.hostname, port or (443 if parsed.scheme == "https" else 80)


def _location(url: str) -> str:
    """Return a directory in one spelling: an absolute path has the scheme ``file``."""
    path = f"file:{url}" if url.startswith("/") else url
    scheme, _, rest = path.partition(":")
    if scheme == "file":
        rest = re.sub("^//(?=/)", "", rest)
    return f"{scheme}:{rest.rstrip('/')}"


def _is_below(place: str, root: str) -> bool:
    return (place == root or place.startswith(f"{root}/")) and ".." not in place.split("/")


def _invalid(message: str) -> Exception:
    from storage_lib.errors import InvalidInputError

    return InvalidInputError(message)
