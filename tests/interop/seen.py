"""What the interop suite saw, summed up in seen.json, and docs/compatibility.md, which is made from that.

PYTHONPATH=docker/local python -m tests.interop.seen  # runs all steps (a minute or two), then writes both
PYTHONPATH=docker/local python -m tests.interop.seen NAME ...  # these tables, or lives, alone
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.interop.engines import Engine, FlinkSql, Java, Ours, Place, Pypaimon, Rust
from tests.interop.known_limits import told
from tests.interop.lives import Actor, actors_of, steps_of
from tests.interop.one_life import DONE, SAME, Life
from tests.interop.table_cases import TABLES
from tests.support.flink import Flink
from tests.support.paimon_core import CHECKOUT, SOURCES, PaimonCore

SEEN = Path(__file__).with_name("seen.json")
PAGE = CHECKOUT / "docs" / "compatibility.md"
REMEDY = "run `PYTHONPATH=docker/local python -m tests.interop.seen` and read the difference"
LIVES_OF_TABLES = [(name, life) for name, case in TABLES.items() for life in case.lives]
TITLES: dict[Actor, str] = {
    "java": "Java core",
    "rust": "pypaimon-rust",
    "pypaimon": "pypaimon",
    "flink 1.20": "Flink 1.20, Paimon",
    "flink 2.0": "Flink 2.0, Paimon",
}
VERSIONS = {
    "java": (SOURCES.with_name("paimon_core_ivy.xml"), r'name="paimon-bundle" rev="([^"]+)"'),
    "flink 1.20": (SOURCES.with_name("flink_1_20_ivy.xml"), r'name="paimon-flink-1.20" rev="([^"]+)"'),
    "flink 2.0": (SOURCES.with_name("flink_2_0_ivy.xml"), r'name="paimon-flink-2.0" rev="([^"]+)"'),
    "rust": (CHECKOUT / "requirements.lock", r"(?m)^pypaimon-rust==(\S+)"),
    "pypaimon": (CHECKOUT / "requirements-paimon.lock", r"(?m)^pypaimon==(\S+)"),
}
HEAD = """# Read and written by others

Made by `PYTHONPATH=docker/local python -m tests.interop.seen` from what the tests in `tests/interop` saw; do not edit.

Tables of every kind live through a sequence of appends, updates, deletions, compactions, overwrites, dropped
partitions, tags and expiries, done in turns by this library and programs that are not ours. After each step all
of them read the whole table, and every row is compared with what we read. "27 of 27" says how often the rows were the
same. Below each engine stands what it did to the tables; full compactions, deletions and the care of partitions are
asked of the Java core, which is the code that Spark and Flink run, and of Flink itself. What Flink's streams and ours
make of such tables, with every changelog producer, is in `tests/interop/test_flink_streams.py`.

"""


def engines_with(core: PaimonCore, flinks: Mapping[Actor, Flink]) -> dict[Actor, Engine]:
    """All of them, ours first."""
    theirs = {actor: FlinkSql(flink) for actor, flink in flinks.items()}
    return {"ours": Ours(), "java": Java(core), "rust": Rust(), "pypaimon": Pypaimon(), **theirs}


def live(name: str, life: str, engines: Mapping[Actor, Engine], home: Path) -> dict[str, Any]:
    """One table's life, summed up: what each engine did, and how often it read what."""
    place = Place(warehouse=home / "warehouse", scratch=home)
    case = TABLES[name]
    actors = actors_of(life)
    outcomes = Life(place, case, {actor: engines[actor] for actor in actors}).live(steps_of(life, case))
    read: dict[str, Counter[str]] = {actor: Counter() for actor in actors}
    did: dict[str, dict[str, str]] = {actor: {} for actor in actors}
    for outcome, words in told(outcomes, name, case):
        if outcome.does == "read":
            read[outcome.engine][words] += 1
        elif did[outcome.engine].setdefault(outcome.step.verb, words) == DONE:
            did[outcome.engine][outcome.step.verb] = words
    return {actor: {"did": did[actor], "read": dict(sorted(read[actor].items()))} for actor in actors}


def versions() -> dict[str, str]:
    """Of the other engines, as they are pinned."""
    return {
        actor: re.search(pattern, file.read_text()).group(1)  # type: ignore[union-attr]
        for actor, (file, pattern) in VERSIONS.items()
    }


def load() -> dict[str, Any]:
    """The last recorded results."""
    return dict(json.loads(SEEN.read_text()))


def page(seen: Mapping[str, Any]) -> str:
    """docs/compatibility.md as it follows from what was seen."""
    notes: list[str] = []
    lines = []
    for life in dict.fromkeys(life for _, life in LIVES_OF_TABLES):
        others = [actor for actor in actors_of(life) if actor != "ours"]
        titles = [f"{TITLES[actor]} {seen['versions'][actor]}" for actor in others]
        lines += [f"## Tables {life}", "", f"| table | {' | '.join(titles)} |", f"|---{'|---' * len(titles)}|"]
        for name, case in TABLES.items():
            if life in case.lives:
                of = seen["tables"][name][life]
                cells = [_cell(of[actor], notes, case.not_by.get(actor)) for actor in others]
                lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    lines += [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return HEAD + "\n".join(lines) + "\n"


def _cell(of: Mapping[str, Any], notes: list[str], not_asked: str | None) -> str:
    looks = sum(of["read"].values())
    said = [f"reads {of['read'].get(SAME, 0)} of {looks}"]
    said[0] += "".join(_note(words, notes) for words in of["read"] if words != SAME)
    said += [verb if words == DONE else f"no {verb}{_note(words, notes)}" for verb, words in of["did"].items()]
    if not_asked is not None:
        said.append(f"not to write{_note(not_asked, notes)}")
    return "; ".join(said)


def _note(words: str, notes: list[str]) -> str:
    if words not in notes:
        notes.append(words)
    return f" ({notes.index(words) + 1})"


def main(names: list[str]) -> None:
    """Run the steps of all tables, or of those with these names, again."""
    known = load()["tables"] if SEEN.exists() else {}
    with PaimonCore() as core, Flink("1.20") as older, Flink("2.0") as newer, tempfile.TemporaryDirectory() as home:
        engines = engines_with(core, {"flink 1.20": older, "flink 2.0": newer})
        for number, (name, life) in enumerate(LIVES_OF_TABLES):
            if not names or name in names or life in names:
                place = Path(home) / str(number)
                place.mkdir()
                known.setdefault(name, {})[life] = live(name, life, engines, place)
                print(f"{name}, {life}", flush=True)
    tables = {name: {life: known[name][life] for life in case.lives} for name, case in TABLES.items()}
    seen = {"versions": versions(), "tables": tables}
    SEEN.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(seen))


if __name__ == "__main__":
    main(sys.argv[1:])
