"""Keeps what a Python process of Spark has imported out of its garbage collections.

Spark's daemon collects garbage after every request and every task. With this library imported that takes 60 ms of
processor time, and a micro-batch makes two such requests in addition to its tasks, to plan and to commit. In tasks of a
local session most of it is spared already (``warm_daemon``).
"""

from __future__ import annotations

import gc
import sys
from itertools import islice, repeat

_DAEMONS = ("pyspark.daemon", "storage_lib.spark.runtime.warm_daemon")
# Each of the first requests still imports something; later garbage is freed when the process ends.
_TURNS = islice(repeat(None), 3)


def spare_what_is_imported() -> None:
    """In a process of Spark's daemon, when a request or task begins: set apart what lives. Elsewhere, nothing."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name in _DAEMONS and next(_TURNS, False) is None:
        gc.freeze()
