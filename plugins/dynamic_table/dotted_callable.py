"""A callable by its dotted path, ``package.module:function``: how a form names Python code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load_callable"]


def load_callable(path: str) -> Callable[..., Any]:
    """Import and return it; an InvalidInputError says which half of the path is wrong."""
    from storage_lib.errors import InvalidInputError

    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name) or path.startswith("."):
        message = f"{path!r} is not a callable's path: write 'package.module:function'."
        raise InvalidInputError(message)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as missing:
        message = f"No module {missing.name!r} for the callable {path!r}: is it in the dags or plugins folder?"
        raise InvalidInputError(message) from missing
    found = getattr(module, name, None)
    if not callable(found):
        message = f"Module {module_name!r} has no callable {name!r}."
        raise InvalidInputError(message)
    loaded: Callable[..., Any] = found
    return loaded
