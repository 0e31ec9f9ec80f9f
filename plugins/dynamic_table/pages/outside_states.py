"""What the pages show of Kafka: the state of a table's log, and of the topics that are read into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dynamic_table.pages.shown_error import shown_error

if TYPE_CHECKING:
    from storage_lib import DynamicTable

__all__ = ["log_state", "source_states"]


def log_state(table: DynamicTable, secrets: Sequence[str]) -> dict[str, Any]:
    """Return ``state`` (none, ok or error), and how many records of the log are not in the files yet (``lag``)."""
    from storage_lib.schema.options.secret_text import hidden_in

    if table.log is None:
        return {"state": "none"}
    try:
        described = table.describe()
    except Exception as error:  # noqa: BLE001  shown in the table's row
        return {"state": "error", "error": shown_error(error, secrets)}
    end = described.get("log end", "")
    if end.startswith("unknown"):
        return {"state": "error", "error": hidden_in(end, secrets)}
    lag = described.get("log records not yet in files")
    return {"state": "ok", "lag": None if lag is None else int(lag)}


def source_states(table: DynamicTable, secrets: Sequence[str]) -> list[dict[str, Any]]:
    """Return each topic that is read into the table, with the offsets that the table lacks (``lag``) or an ``error``.

    Sources with a name of their own, whose topic is not known, have neither.
    """
    from storage_lib import NotFoundError
    from storage_lib.table.sources.source_lag import source_lag, topics_read

    found: list[dict[str, Any]] = []
    for topic in topics_read(table):
        state: dict[str, Any] = {"source": topic, "lag": None, "error": None}
        try:
            state["lag"] = source_lag(table, topic, table.address.options)
        except NotFoundError:
            pass
        except Exception as error:  # noqa: BLE001  shown next to the source
            state["error"] = shown_error(error, secrets)
        found.append(state)
    return found
