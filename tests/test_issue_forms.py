"""The issue forms are valid, and name only files and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).parents[1]
FORMS = {path.name: path.read_text() for path in (CHECKOUT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")}
COMMANDS = (CHECKOUT / "docs" / "reference" / "command-line.md").read_text()
KINDS = {"markdown", "textarea", "dropdown"}


def test_every_form_has_a_name_and_fields_with_labels_of_their_own() -> None:
    forms = {name: yaml.safe_load(text) for name, text in FORMS.items() if name != "config.yml"}

    assert set(forms) == {"bug.yml", "feature.yml"}
    for form in forms.values():
        assert set(form) == {"name", "description", "body"}
        assert {field["type"] for field in form["body"]} <= KINDS
        asked = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in asked}) == len({field["attributes"]["label"] for field in asked})


def test_files_and_commands_that_a_form_names_exist() -> None:
    text = "\n".join(FORMS.values())
    files, commands = re.findall(r"[\w/]+\.md", text), re.findall(r"`dynamic-table (\w+)", text)

    assert files
    assert commands
    assert [each for each in files if not (CHECKOUT / each).is_file()] == []
    assert [each for each in commands if f"\n## {each}\n" not in COMMANDS] == []
