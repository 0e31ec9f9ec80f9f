"""Plants each fault of ``faults.toml`` in a copy of the checkout, and plays games in it until one finds the fault.

``python -m tests.game.find_faults [NAME]`` prints the first seed that finds each. Ends with 1 if one is not found.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.copied_tree import CopiedTree
from tests.mutants.planted_fault import PlantedFault

FAULTS = Path(__file__).with_name("faults.toml")
GAMES, MOVES = 1_000, 40
"""Long games: twice the moves have four times the pairs."""
_PLAY = "from tests.game.play import first_failure; print(first_failure([*{seeds}, *range({games})], {moves}) or '')"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOfPairs:
    """A fault where two features meet; its changes are planted together.

    ``seeds``: games that found it, which are played first. They may no longer find it after moves were added.
    """

    name: str
    promise: str
    seeds: tuple[int, ...]
    changes: tuple[PlantedFault, ...]


def load_faults() -> tuple[FaultOfPairs, ...]:
    """Return all faults, in the order of the file."""
    entries = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]
    return tuple(
        FaultOfPairs(
            name=entry["name"],
            promise=entry["promise"],
            seeds=tuple(entry.get("seeds", ())),
            changes=tuple(
                PlantedFault(protocol="game", name=entry["name"], promise=entry["promise"], tests=(), **change)
                for change in entry["change"]
            ),
        )
        for entry in entries
    )


def found_by(tree: CopiedTree, fault: FaultOfPairs) -> str:
    """Return the failure of the first game that finds the fault, which begins with its seed; empty if none does."""
    with ExitStack() as planted:
        for change in fault.changes:
            planted.enter_context(tree.planted(change))
        play = _PLAY.format(seeds=list(fault.seeds), games=GAMES, moves=MOVES)
        command = [sys.executable, "-c", play]
        done = subprocess.run(command, cwd=tree.root, env=tree.environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(names: Iterable[str]) -> int:
    """Search for the faults of these names, or for all; return the exit code."""
    missed, wanted = 0, set(names)
    with tempfile.TemporaryDirectory(prefix="game-") as folder:
        tree = CopiedTree(Path(folder))
        tree.check_imports()
        for fault in load_faults():
            if not wanted or fault.name in wanted:
                failure = found_by(tree, fault)
                missed += not failure
                shown = "\n    ".join(failure.splitlines()[:4]) or f"NOT FOUND in {GAMES} games of {MOVES} moves"
                print(f"{fault.name}: {shown}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
