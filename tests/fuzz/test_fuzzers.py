"""Runs some seeds of every fuzzer; ``python -m tests.fuzz.run`` runs for a given time."""

from __future__ import annotations

import pytest

from tests.fuzz.foreign_bytes import TARGETS
from tests.fuzz.run import run_case

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("start", [0, 1_000_000])
def test_damaged_bytes_are_refused_by_name_or_read(name: str, start: int) -> None:
    for seed in range(start, start + 150):
        run_case(name, seed)


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_a_table_with_a_damaged_file_shows_its_rows_or_names_a_file(start: int) -> None:
    for seed in range(start, start + 20):
        run_case("table", seed)


@pytest.mark.parametrize("start", [0, 1_000_000])
def test_a_table_with_damaged_lease_files_can_be_written_to(start: int) -> None:
    for seed in range(start, start + 25):
        run_case("lease", seed)


@pytest.mark.parametrize("seed", [2_712, 3_356, 5_064, 9_498, 9_510])
def test_cases_of_the_past_stay_solved(seed: int) -> None:
    run_case("table", seed)
