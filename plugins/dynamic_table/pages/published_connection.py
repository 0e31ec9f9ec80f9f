"""Opens connections for the pages: only those that an administrator has published.

Every user with permission to read assets may open the pages, with any connection id in the URL. So a connection is
opened only if its type is ``dynamic_table`` and its extra has ``"publish_pages": true``, which requires permission to
edit connections. The answer is the same for all other ids, so that the pages do not reveal which ids exist.
"""

from __future__ import annotations

import logging

from airflow.sdk import BaseHook

from dynamic_table.hook import DynamicTableHook

__all__ = ["PUBLISH_FIELD", "NotPublishedError", "published_hook"]

PUBLISH_FIELD = "publish_pages"
_log = logging.getLogger(__name__)


class NotPublishedError(LookupError):
    """The pages may not open this connection, or it does not exist."""

    def __init__(self, connection: str) -> None:
        super().__init__(
            f"connection {connection!r} is not published to these pages; an administrator publishes a connection of "
            f'type {DynamicTableHook.conn_type} with "{PUBLISH_FIELD}": true in its extra'
        )


def published_hook(connection: str) -> DynamicTableHook:
    """Return the hook of a published connection; raises ``NotPublishedError`` for any other id."""
    try:
        found = BaseHook.get_connection(connection)
        hook = DynamicTableHook(dynamic_table_conn_id=connection, connection=found)
        is_published = found.conn_type == DynamicTableHook.conn_type and hook.extra.get(PUBLISH_FIELD) in (True, "true")
    except Exception as error:  # noqa: BLE001  a different answer would reveal whether the id exists
        _log.info("The pages cannot open connection %r: %s", connection, type(error).__name__)
        raise NotPublishedError(connection) from None
    if not is_published:
        raise NotPublishedError(connection)
    return hook
