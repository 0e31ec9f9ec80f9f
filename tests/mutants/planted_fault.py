"""Planted faults: one-line changes of the code, each of which breaks a promise that a test of ``make test`` proves.

``faults/<protocol>.toml`` lists them: name, the promise, the file, its text before and after, and the tests that find
the fault.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults"


class StaleFaultError(Exception):
    """A fault does not fit the code any more: correct its entry in ``faults/``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFault:
    """One fault. ``before`` occurs once in ``file``, a path in the checkout; ``tests`` are ids of test functions."""

    protocol: str
    name: str
    promise: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """Return the text of ``file`` with the fault; ``StaleFaultError`` if the fault does not fit it."""
        count = text.count(self.before)
        if count != 1:
            message = (
                f"fault {self.name}: its text occurs {count} times in {self.file}, not once; correct it in "
                f"tests/mutants/faults/{self.protocol}.toml. It reads:\n{self.before}"
            )
            raise StaleFaultError(message)
        found = text.replace(self.before, self.after)
        try:
            changes = ast.dump(ast.parse(found)) != ast.dump(ast.parse(text))
        except SyntaxError as error:
            message = f"fault {self.name}: {self.file} does not compile with it: {error}"
            raise StaleFaultError(message) from error
        if not changes:
            message = f"fault {self.name} changes nothing in {self.file} but its layout"
            raise StaleFaultError(message)
        return found


def load_faults(folder: Path = FAULTS) -> tuple[PlantedFault, ...]:
    """Return all faults, ordered by protocol; ``StaleFaultError`` for a name that two of them have."""
    faults = tuple(
        PlantedFault(protocol=path.stem, **{**entry, "tests": tuple(entry["tests"])})
        for path in sorted(folder.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    )
    names = [each.name for each in faults]
    for name in names:
        if names.count(name) > 1:
            message = f"two faults are named {name}; give one of them another name"
            raise StaleFaultError(message)
    return faults
