"""The name under which this library is published, and its version."""

from __future__ import annotations

__all__ = ["DISTRIBUTION", "VERSION", "install_command", "missing_module"]

DISTRIBUTION = "spark-dynamic-tables"
VERSION = "0.3.0"
"""``pyproject.toml`` takes the version of the package from this line."""


def install_command(*extras: str) -> str:
    """Return the command that installs the library with optional dependencies, for error messages."""
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def missing_module(what: str, error: ModuleNotFoundError, *extras: str) -> ModuleNotFoundError:
    """Return an error that ``what`` needs the missing module, with the command that installs its extras."""
    package = (error.name or "").partition(".")[0]
    return ModuleNotFoundError(f"{what} needs {package}: {install_command(*extras)}", name=error.name)
