"""Constructors of the JVM's internal classes, whose number of parameters differs between versions of Spark."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

_counts: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()
"""Numbers of parameters by gateway and class: asking for one takes several calls of 0.2 ms each."""


def parameter_count(gateway: Any, name: str) -> int:
    """Return how many parameters the largest public constructor of a class of Spark's JVM has.

    Vendors change internal classes without changing the number of the version, so the class itself is asked.
    """
    known = _counts.setdefault(gateway, {})
    if name not in known:
        found = gateway.jvm.org.apache.spark.util.Utils.classForName(name, True, False)
        known[name] = max(int(each.getParameterCount()) for each in found.getConstructors())
    return known[name]
