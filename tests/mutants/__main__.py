"""``python -m tests.mutants``: plant each fault in a copy of the checkout, and show which test finds it.

Ends with 1 if a fault is not found, if it does not fit the code any more, or if a test fails without any fault.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.copied_tree import CopiedTree
from tests.mutants.fault_search import Search, check_without_faults, search
from tests.mutants.planted_fault import CHECKOUT, PlantedFault, StaleFaultError, load_faults

_LINES_SHOWN = 40


def chosen_faults(only: str | None) -> tuple[PlantedFault, ...]:
    """Return the faults to plant; all without a name. Raises ``StaleFaultError`` before anything runs."""
    faults = load_faults()
    for each in faults:
        each.planted((CHECKOUT / each.file).read_text(encoding="utf-8"))
    chosen = tuple(each for each in faults if only in (None, each.name, each.protocol))
    if not chosen:
        message = f"no fault is named {only!r}; there are {', '.join(each.name for each in faults)}"
        raise StaleFaultError(message)
    return chosen


def searches(faults: Sequence[PlantedFault], trees: Sequence[CopiedTree]) -> list[Search]:
    """Search for the faults, as many at once as there are copies of the tree; print each result as it comes."""
    free: SimpleQueue[CopiedTree] = SimpleQueue()
    for each in trees:
        free.put(each)

    def in_a_tree(fault: PlantedFault) -> Search:
        tree = free.get()
        try:
            result = search(tree, fault)
        finally:
            free.put(tree)
        print(result, flush=True)
        return result

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(in_a_tree, faults))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--only", help="name of a fault, or of a protocol: a file in tests/mutants/faults")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 4), help="faults planted at once")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        faults = chosen_faults(given.only)
    except (StaleFaultError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [CopiedTree(Path(folder, str(number))) for number in range(given.jobs)]
        trees[0].check_imports()
        results = searches(faults, trees)
        failure = check_without_faults(trees[0], results)
    missed = [each for each in results if each.found_by is None]
    for each in missed:
        print(f"\n== {each}\n{each.fault.promise}")
        print("\n".join(each.output.splitlines()[-_LINES_SHOWN:]))
    if failure is not None:
        print(f"\n== these tests fail without any fault, so they prove nothing\n{failure}")
    print(f"{len(results) - len(missed)} of {len(results)} found in {time.monotonic() - started:.0f} s")
    return 1 if missed or failure is not None else 0


if __name__ == "__main__":
    sys.exit(main())
