"""Long runs of the fuzzers: ``python -m tests.fuzz.run --minutes 10 [--seed 1] [--only change]``.

Every case has a seed of its own, which is printed if it fails; ``--seed`` with ``--minutes 0`` runs that one again.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import random
import sys
import time
import traceback
import warnings
from collections import Counter

from tests.fuzz.damaged_leases import damage_lease_files
from tests.fuzz.damaged_tables import damage_one_file
from tests.fuzz.foreign_bytes import TARGETS

CASE_SECONDS_MAX = 20
_NAMES = ("table", "lease", *TARGETS)


def run_case(name: str, seed: int) -> None:
    """Run one case of one fuzzer."""
    chance = random.Random(f"{name}-{seed}")  # noqa: S311  not a secret
    if name == "table":
        damage_one_file(chance)
    elif name == "lease":
        damage_lease_files(chance)
    else:
        TARGETS[name](chance)


def main() -> int:
    """Run until the time is over; return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=_NAMES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [arguments.only] if arguments.only else list(_NAMES)
    ends, failed, done = time.monotonic() + 60 * arguments.minutes, 0, Counter[str]()
    for seed in itertools.count(arguments.seed):
        for name in names:
            # If a case hangs, dump all stacks and exit.
            faulthandler.dump_traceback_later(CASE_SECONDS_MAX, exit=True)
            try:
                run_case(name, seed)
            except Exception:  # noqa: BLE001  what is looked for
                failed += 1
                print(f"--- {name}, seed {seed}", file=sys.stderr)
                traceback.print_exc()
            done[name] += 1
        if time.monotonic() >= ends:
            break
    faulthandler.cancel_dump_traceback_later()
    print(f"seeds from {arguments.seed}: {dict(done)}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
