"""CHANGELOG.md follows Keep a Changelog: releases, kinds of changes, one sentence per line."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from storage_lib.distribution import VERSION

LINES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text().splitlines()
KINDS = ["### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"]
RELEASE = re.compile(r"## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})")
SENTENCE_END = re.compile(r"[\w)`]\. ")
LONGEST = 200
UNRELEASED = "## Unreleased"
FIRST = LINES.index(UNRELEASED)


def test_releases_stand_newest_first_below_what_is_unreleased() -> None:
    heads = [line for line in LINES if line.startswith("## ")]
    assert heads[0] == UNRELEASED
    releases = [RELEASE.fullmatch(line) for line in heads[1:]]
    found = [(tuple(map(int, each[1].split("."))), each[2]) for each in releases if each is not None]
    assert len(found) == len(heads) - 1
    assert all(newer > older for newer, older in pairwise(found))
    assert tuple(map(int, VERSION.split("."))) >= found[0][0]


def test_each_release_lists_its_changes_by_kind_in_one_order() -> None:
    releases = "\n".join(LINES).split("\n## ")[1:]
    for release in releases:
        kinds = [line for line in release.splitlines() if line.startswith("### ")]
        assert kinds == [kind for kind in KINDS if kind in kinds], release.partition("\n")[0]
        assert not re.search(r"^### .*\n+(?=#|\Z)", release, re.MULTILINE), "a kind without a change"


def test_each_change_is_one_line_below_a_kind() -> None:
    head = UNRELEASED
    for number, line in enumerate(LINES[FIRST:], FIRST + 1):
        if line.startswith("#"):
            head = line
        elif line and (head == UNRELEASED or head in KINDS or line.startswith("* ")):
            assert head in KINDS, f"line {number} is below no kind of change; move it below one of {KINDS}"
            assert line.startswith("* "), f"line {number} is not a change; write each in one line that begins with '* '"


def test_each_change_is_one_short_sentence() -> None:
    for number, line in enumerate(LINES[FIRST:], FIRST + 1):
        assert len(line) <= LONGEST, f"line {number} has {len(line)} characters; keep it below {LONGEST}"
        assert not SENTENCE_END.search(line), f"line {number} has several sentences; keep what a user notices"


def test_no_change_is_listed_twice() -> None:
    changes = [line for line in LINES if line.startswith("* ")]

    assert len(changes) == len(set(changes))
