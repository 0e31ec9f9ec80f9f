"""Versions by which a process can continue the work of another one: Python's, Arrow's and this library's.

An engine plans in one process and reads and writes in others, on other machines of a cluster. With other versions they
could fail at any step, or write files that differ.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pyarrow as pa

from storage_lib.distribution import DISTRIBUTION, VERSION
from storage_lib.errors import InvalidInputError

__all__ = ["ProcessVersions"]


@dataclass(frozen=True, slots=True)
class ProcessVersions:
    """Versions of one process; of Python and Arrow, the releases of one version fit each other."""

    python: str
    pyarrow: str
    library: str

    @classmethod
    def here(cls) -> ProcessVersions:
        """Return the versions of this process."""
        return cls(python=".".join(map(str, sys.version_info[:3])), pyarrow=pa.__version__, library=VERSION)

    def refuse_elsewhere(self, table: str) -> None:
        """Raise ``InvalidInputError`` in a process that does not fit the one that these versions are of."""
        here = ProcessVersions.here()
        differing = [
            f"{what} {found}, not {planned}"
            for what, found, planned, counts in (
                ("Python", here.python, self.python, 2),
                ("pyarrow", here.pyarrow, self.pyarrow, 1),
                (DISTRIBUTION, here.library, self.library, 3),
            )
            if found.split(".")[:counts] != planned.split(".")[:counts]
        ]
        if differing:
            message = (
                f"table {table}: a process in {sys.prefix} has {'; '.join(differing)}, as the driver has. Install the "
                "driver's versions on all machines, or send them with the job"
            )
            raise InvalidInputError(message)
