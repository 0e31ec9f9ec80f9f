"""Exclude imported modules from the garbage collections of Spark's Python processes.

Spark's daemon collects garbage after every request and every task. With this library imported, a collection takes 60 ms
of processor time, and a micro-batch makes two such requests, to plan and to commit, in addition to its tasks. Tasks of
a local session avoid most of this already (``warm_daemon``).
"""

from __future__ import annotations

import gc
import sys
from itertools import islice, repeat

_DAEMONS = ("pyspark.daemon", "storage_lib.spark.runtime.warm_daemon")
# Freeze at the first three requests only: each of them still imports modules, and frozen garbage is never collected.
_TURNS = islice(repeat(None), 3)


def spare_what_is_imported() -> None:
    """Freeze all live objects at the start of a request or task; does nothing outside a process of Spark's daemon."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name in _DAEMONS and next(_TURNS, False) is None:
        gc.freeze()
