"""Generated pages under docs/ are up to date."""

from __future__ import annotations

import json
import re

from storage_lib.schema.options.table_options import TableOptions
from tests.support.benchmarks_page import PAGE as BENCHMARKS_PAGE
from tests.support.benchmarks_page import RESULTS, benchmarks_page
from tests.support.cli_page import PAGE as COMMANDS_PAGE
from tests.support.cli_page import cli_page
from tests.support.format_examples import BLOCK, FORMAT_PAGE, OPTIONS_PAGE, examples, filled_in, options_page
from tests.support.performance_page import PAGE, PICTURES, performance_page, pictures

REMEDY = "run `python -m tests.support.format_examples` and read the difference"
# Sizes depend on the compressor's release, a file's checksum on Arrow's, its creation time on the machine's time zone.
VARYING = re.compile(
    r'((?:ListSize": |_FILE_SIZE +|_CREATION_TIME +))\d+|(?<=0000000400000000 )[0-9a-f]{8}$', re.MULTILINE
)


def test_the_examples_of_the_format_page_are_what_a_table_looks_like() -> None:
    page = FORMAT_PAGE.read_text()
    assert VARYING.sub(r"\1", filled_in(page)) == VARYING.sub(r"\1", page), REMEDY


def test_every_example_has_a_place_on_the_format_page() -> None:
    assert {name for _, name, _, _ in BLOCK.findall(FORMAT_PAGE.read_text())} == set(examples())


def test_the_options_page_lists_the_options_of_the_code() -> None:
    assert OPTIONS_PAGE.read_text() == options_page(), REMEDY


def test_a_default_is_written_as_a_user_would_write_it() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| (\S.*?) \|", OPTIONS_PAGE.read_text().partition("\n## Columns, ")[0], re.MULTILINE
    )
    assert len(rows) > 20
    assert TableOptions.parse(dict(rows)) == TableOptions()


def test_the_page_of_commands_lists_what_the_parser_accepts() -> None:
    assert COMMANDS_PAGE.read_text() == cli_page(), "run `python -m tests.support.cli_page`"


def test_the_performance_page_shows_the_newest_results() -> None:
    assert PAGE.read_text() == performance_page(), "run `python -m tests.support.performance_page`"
    assert BENCHMARKS_PAGE.read_text() == benchmarks_page(), "run `python -m tests.support.performance_page`"


def test_the_performance_page_has_ten_figures_each_with_its_newest_picture() -> None:
    shown = re.findall(r"^## .+\n\n.+\n\n!\[.+\]\(images/performance/(.+)\)$", PAGE.read_text(), re.MULTILINE)

    assert len(shown) == 10
    assert {path.name: path.read_text() for path in PICTURES.iterdir()} == {
        path.name: picture for path, picture in pictures().items()
    }
    assert sorted(shown) == sorted(path.name for path in pictures())


def test_every_file_of_results_has_its_date_machine_and_place_on_the_page() -> None:
    results = {each.stem for each in RESULTS.glob("*.json")} - {"measured"}
    assert set(json.loads((RESULTS / "measured.json").read_text())) == results
    assert len(re.findall("^## ", BENCHMARKS_PAGE.read_text(), re.MULTILINE)) == len(results)
