"""A statement whose common table expressions can be computed one after the other."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Steps"]


@dataclass(frozen=True, slots=True)
class Steps:
    """SELECT statements as text: ``shared`` ones under their relations' names, over earlier ones; then ``last``."""

    shared: tuple[tuple[str, str], ...]
    last: str

    @property
    def text(self) -> str:
        """One statement, with the shared ones as common table expressions."""
        shared = ", ".join(f"{name} AS ({select})" for name, select in self.shared)
        return f"WITH {shared} {self.last}" if shared else self.last
