"""CHANGELOG.md is in the form of Keep a Changelog: releases, kinds of changes, one line each.

New lines may stand directly below "Unreleased", where branches meet without conflicts; they are sorted when a version
is released.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from storage_lib.distribution import VERSION

LINES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text().splitlines()
KINDS = ["### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"]
RELEASE = re.compile(r"## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})")
LONGEST = 250
UNSORTED = "## Unreleased"


def test_releases_stand_newest_first_below_what_is_unreleased() -> None:
    heads = [line for line in LINES if line.startswith("## ")]
    assert heads[0] == UNSORTED
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


def test_each_change_is_one_line_below_a_kind() -> None:
    kind = None
    for number, line in enumerate(LINES, 1):
        if line.startswith("#"):
            kind = line if line in KINDS else UNSORTED if line == UNSORTED else None
        elif kind == UNSORTED:
            continue
        elif line.startswith("* "):
            assert kind is not None, f"line {number} is below no kind of change"
            assert len(line) <= LONGEST, f"line {number} has {len(line)} characters; keep it below {LONGEST}"
        elif kind is not None:
            assert line == "", f"line {number} continues a change; write it in one line"
