"""Loads a callable by its dotted path, ``package.module:function``.

Checks only the path's form. For a path from a form field or a template, use ``allowed_callable``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load_callable", "module_and_name"]


def module_and_name(path: str) -> tuple[str, str]:
    """Return both parts of the path; raises InvalidInputError if it is malformed."""
    from storage_lib.errors import InvalidInputError

    module, colon, name = path.partition(":")
    if not (module and colon and name) or path.startswith("."):
        message = f"{path!r} is not a callable's path: write 'package.module:function'."
        raise InvalidInputError(message)
    return module, name


def load_callable(path: str) -> Callable[..., Any]:
    """Import and return the callable; raises InvalidInputError for an unknown module or name."""
    from storage_lib.distribution import import_problem
    from storage_lib.errors import InvalidInputError

    module_name, name = module_and_name(path)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as missing:
        is_its_own = f"{module_name}.".startswith(f"{missing.name}.")
        message = (
            f"No module {missing.name!r} for the callable {path!r}: is it in the dags or plugins folder?"
            if is_its_own
            else import_problem(f"the callable {path!r}", missing)
        )
        raise InvalidInputError(message) from missing
    found = getattr(module, name, None)
    if not callable(found):
        message = f"Module {module_name!r} has no callable {name!r}."
        raise InvalidInputError(message)
    loaded: Callable[..., Any] = found
    return loaded
