"""The game finds faults that the product had where two features meet, and that other tests had missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.game.find_faults import FaultOfPairs, found_by, load_faults
from tests.mutants.copied_tree import CopiedTree
from tests.mutants.planted_fault import CHECKOUT


@pytest.mark.parametrize("fault", load_faults(), ids=lambda fault: fault.name)
def test_a_fault_fits_the_code(fault: FaultOfPairs) -> None:
    for change in fault.changes:
        change.planted((CHECKOUT / change.file).read_text(encoding="utf-8"))


@pytest.mark.drill
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", load_faults(), ids=lambda fault: fault.name)
def test_games_find_a_fault(fault: FaultOfPairs, tmp_path: Path) -> None:
    assert found_by(CopiedTree(tmp_path), fault) != ""
