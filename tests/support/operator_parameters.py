"""Parameters of Airflow operators."""

from __future__ import annotations

import inspect
from typing import Any


def parameters_of(operator: type[Any]) -> set[str]:
    """Return the names that an operator's constructor takes, those of its base classes included."""
    found: set[str] = set()
    for each in operator.mro():
        if "__init__" in vars(each):
            found |= {
                name
                for name, parameter in inspect.signature(vars(each)["__init__"]).parameters.items()
                if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
            }
    return found - {"args"}
