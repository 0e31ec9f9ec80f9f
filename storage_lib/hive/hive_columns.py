"""How an entry of a Hive metastore gets other columns."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from pymetastore.hive_metastore.ttypes import InvalidOperationException


def alter_entry(alter: Callable[[Any], None], entry: Any, former: Any) -> None:
    """Pass ``entry`` to ``alter``, in two steps if the metastore refuses the change of its columns.

    It compares columns by position, so a dropped column looks like a changed type. A process that is killed between the
    steps leaves the entry as ``former`` says, but without columns: the next comparison finds it out of date.
    """
    try:
        alter(entry)
    except InvalidOperationException:
        if not former.sd.cols:
            raise
        without_columns = deepcopy(former)
        without_columns.sd.cols = []
        alter(without_columns)
        alter(entry)
