"""Limits which Python functions a form or a template may name.

Every user who may trigger a DAG fills in its form, so a task calls only functions of the modules that the setting
``[dynamic_table] callable_modules`` lists. The setting is part of Airflow's configuration, which only an administrator
changes; the task checks it in the worker, right before it imports the module.

An entry of the list is one of

    dags-folder            every module below the DAGs folder ([core] dags_folder, and the bundle of the task's DAG)
    package.module         that module and the modules below it
    package.module:name    that function only, wherever it is defined

The default is ``dags-folder``. A function has to be defined in an allowed module: one that the module only imports,
such as ``subprocess.run``, is not allowed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from dynamic_table.policies.dotted_callable import load_callable, module_and_name
from dynamic_table.versions.sdk_conf import conf

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DAGS_FOLDER", "load_allowed_callable"]

DAGS_FOLDER = "dags-folder"


def load_allowed_callable(path: str) -> Callable[..., Any]:
    """Import and return the function that ``package.module:function`` names.

    Raises InvalidInputError for a module that is not allowed, without importing it; for a function whose defining
    module is not allowed; and in the cases of ``load_callable``.
    """
    allowed = _Allowed.configured()
    module, _ = module_and_name(path)
    if path in allowed.entries:
        return load_callable(path)
    if not allowed.holds(module):
        raise _refusal(path, f"module {module!r} is not allowed")
    found = load_callable(path)
    home = getattr(found, "__module__", None)
    if not isinstance(home, str) or not allowed.holds(home):
        raise _refusal(path, f"it is defined in module {home!r}, which is not allowed")
    return found


@dataclass(frozen=True, slots=True)
class _Allowed:
    """The entries of the setting, and the folders that ``dags-folder`` stands for."""

    entries: frozenset[str]
    folders: tuple[Path, ...]

    @classmethod
    def configured(cls) -> _Allowed:
        text = conf.get("dynamic_table", "callable_modules", fallback=DAGS_FOLDER) or ""
        return cls(entries=frozenset(text.replace(",", " ").split()), folders=_dags_folders())

    def holds(self, module: str) -> bool:
        parts = module.split(".")
        if any(".".join(parts[:count]) in self.entries for count in range(1, len(parts) + 1)):
            return True
        return DAGS_FOLDER in self.entries and self._is_below_a_folder(parts[0])

    def _is_below_a_folder(self, package: str) -> bool:
        """Return whether all files of a top-level module or package are below the folders; imports nothing."""
        try:
            spec = find_spec(package)
        except (ImportError, ValueError):
            return False
        if spec is None:
            return False
        places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location else [])]
        return bool(places) and all(place is not None and self._holds_file(Path(place)) for place in places)

    def _holds_file(self, place: Path) -> bool:
        # A deployment may switch a folder by a symbolic link, so accept the link's path and its target.
        return any(
            place.absolute().is_relative_to(folder.absolute()) or place.resolve().is_relative_to(folder.resolve())
            for folder in self.folders
        )


def _dags_folders() -> tuple[Path, ...]:
    folders = [conf.get("core", "dags_folder", fallback="")]
    with suppress(RuntimeError, KeyError, AttributeError):  # outside a task the context is missing
        folders.append(str(get_current_context()["ti"].bundle_instance.path))  # type: ignore[attr-defined]
    return tuple(Path(folder) for folder in folders if folder)


def _refusal(path: str, why: str) -> Exception:
    from storage_lib.errors import InvalidInputError

    message = (
        f"The callable {path!r} may not be called: {why}. Forms and templates may name functions of the modules in "
        "the setting [dynamic_table] callable_modules (default: dags-folder); an administrator can add this one "
        f"to it as {path!r}."
    )
    return InvalidInputError(message)
