"""LRU cache of the pages' boards, one per connection."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from dynamic_table.pages.catalog_board import CatalogBoard
from dynamic_table.pages.sink_and_validation import last_validation, sink_state
from dynamic_table.quality.data_docs import docs_root
from dynamic_table.sinks.sink_settings import jobs_root

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dynamic_table.hook import DynamicTableHook

__all__ = ["KeptBoards"]

BOARDS_MAX = 8


class KeptBoards:
    """Boards by connection id; thread-safe."""

    def __init__(self, boards_max: int = BOARDS_MAX) -> None:
        self._boards_max = boards_max
        self._boards: OrderedDict[str, tuple[Hashable, CatalogBoard]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._boards)

    def board(self, hook: DynamicTableHook) -> CatalogBoard:
        """Return the board of a hook's connection, replaced when its warehouse or options have changed.

        The threads of an evicted board end when its last request has ended.
        """
        connection = hook.dynamic_table_conn_id
        jobs, docs = jobs_root(hook), docs_root(hook)
        made_of = (hook.warehouse, tuple(sorted(hook.options.items())), jobs, docs)

        def related(name: str) -> dict[str, Any]:
            return {"sink": sink_state(jobs, name), "validation": last_validation(docs, name, connection)}

        with self._lock:
            known = self._boards.get(connection)
            if known is None or known[0] != made_of:
                known = (made_of, CatalogBoard(hook.get_conn(), related, hook.secrets()))
                self._boards[connection] = known
            self._boards.move_to_end(connection)
            while len(self._boards) > self._boards_max:
                self._boards.popitem(last=False)
            return known[1]
