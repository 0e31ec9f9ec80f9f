"""Parser of text cases: paragraphs of `key: value` lines in tests/cases; `#` starts a comment."""

from __future__ import annotations

from pathlib import Path

CASES = Path(__file__).parent.parent / "cases"


def load_cases(file_name: str) -> list[dict[str, str]]:
    """Return the paragraphs of a case file as mappings; the `case` key of each is its name."""
    cases: list[dict[str, str]] = []
    for paragraph in (CASES / file_name).read_text().split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() and not line.startswith("#")]
        if lines:
            cases.append({key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)})
    return cases
