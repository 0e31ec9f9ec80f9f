"""`make corners`: the tests in the environment of each corner, one after the other, and a summary.

A corner is an environment of the oldest packages, of none of the extras, of another Spark, another Airflow, or dbt; the
target of make that installs it also runs its tests. One that fails does not keep the next ones from running.

    make corners ONLY="lowest spark_4_0" SLICE=3
    make corners ONLY=airflow                      # each of Airflow

Standard library only, as in ``stack_setup``: make runs this before anything is installed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from stack_setup import AIRFLOWS, CHECKOUT, SPARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTS = ("passed", "failed", "skipped")
FORMAT = "{:<12} {:<6} {:>6} {:>6} {:>7} {:>7}"
INTERRUPTED = 130


class Corner(NamedTuple):
    """An environment, with the words by which make runs its tests."""

    name: str
    target: tuple[str, ...]
    has_slices: bool = True


class Outcome(NamedTuple):
    """The result of a corner's tests: make's exit status, and the counts of pytest's last line."""

    corner: str
    status: int
    counts: dict[str, int]
    seconds: float

    def line(self) -> str:
        said = [str(self.counts.get(each, 0)) if self.counts else "-" for each in COUNTS]
        return FORMAT.format(self.corner, "failed" if self.status else "passed", *said, f"{self.seconds:.0f}")


CORNERS = (
    Corner("core", ("core",)),
    Corner("lowest", ("lowest",)),
    *(Corner(f"spark_{each.replace('.', '_')}", ("spark", f"VERSION={each}")) for each in SPARKS),
    *(Corner(f"airflow_{each.replace('.', '_')}", ("airflow", f"VERSION={each}")) for each in AIRFLOWS),
    Corner("dbt", ("dbt",), has_slices=False),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen corners and print a summary; return 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="make corners", description=__doc__)
    parser.add_argument("--only", default="", help="names of corners, or their begins, separated by spaces")
    slices = ["", *map(str, range(1, 17))]
    parser.add_argument(
        "--slice", default="", choices=slices, help="which sixteenth of the tests of each corner but dbt"
    )
    given = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    interrupted = False
    try:
        for corner in chosen(given.only):
            words = ["make", "--no-print-directory", *corner.target]
            if given.slice and corner.has_slices:
                words.append(f"SLICE={given.slice}")
            say(f"== {corner.name}: {' '.join(words)}")
            outcomes.append(outcome(corner.name, words))
    except KeyboardInterrupt:
        interrupted = True
    say("", FORMAT.format("corner", "result", *COUNTS, "seconds"), *(each.line() for each in outcomes))
    if interrupted:
        say("interrupted: the other corners have not run")
        return INTERRUPTED
    return int(any(each.status for each in outcomes))


def chosen(only: str) -> list[Corner]:
    """Return the corners with these names or begins of names, in their own order; all of them for none."""
    wanted = only.split()
    for word in wanted:
        if not any(begins(corner, word) for corner in CORNERS):
            sys.exit(f"corners: no corner is called {word!r}; there are {', '.join(each.name for each in CORNERS)}")
    return [corner for corner in CORNERS if not wanted or any(begins(corner, word) for word in wanted)]


def begins(corner: Corner, word: str) -> bool:
    """Return whether a word names a corner, or all of its kind."""
    return corner.name == word or corner.name.startswith(f"{word}_")


def outcome(name: str, words: Sequence[str]) -> Outcome:
    """Run the tests of a corner, and pass on what they print."""
    started, counts = time.monotonic(), dict[str, int]()
    with subprocess.Popen(words, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            counts = counts_of(line) or counts
    return Outcome(name, process.returncode, counts, time.monotonic() - started)


def counts_of(line: str) -> dict[str, int]:
    """Return the counts of pytest's last line, such as ``== 1 failed, 16 passed in 4.12s ==``; of other lines none.

    An error, in a fixture or a module, counts as a failure.
    """
    words = line.strip("= \n")
    if not re.fullmatch(r"(\d+ [a-z]+, )*\d+ [a-z]+ in [\d.]+s( \(.*\))?", words):
        return {}
    counts: dict[str, int] = {}
    for number, what in re.findall(r"(\d+) ([a-z]+)", words.partition(" in ")[0]):
        kind = "failed" if what.startswith("error") else what
        counts[kind] = counts.get(kind, 0) + int(number)
    return counts


def say(*lines: str) -> None:
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
