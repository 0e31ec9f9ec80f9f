"""What README.md shows is run, what it names exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from tests.support.fenced_blocks import Block, Section, sections

CHECKOUT = Path(__file__).parents[1]
README = CHECKOUT / "README.md"
PAGES = [README, *sorted((CHECKOUT / "docs").rglob("*.md")), CHECKOUT / "docker" / "README.md"]
SECTIONS = sections(README)
BROKER = "127.0.0.1:9092"
COMMANDS = [
    line
    for block in chain.from_iterable(section.blocks for section in SECTIONS)
    if block.language == "bash"
    for line in block.text.splitlines()
]
# Folders that a path in the README may begin with when it stands without its own.
HOMES = (".", "storage_lib", "docs")
TARGET = re.compile(r"`(?:[A-Z_]+=\S+ )*make ([a-z]+)")
NAMED_PATH = re.compile(r"(?<![\w/`:.<-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|yaml|toml)|(?:[\w.-]+/)+)(?=[\s`,);:]|$)")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def programs() -> list[object]:
    """Each section with Python in it, marked by what it needs."""
    marks = {
        "kafka": (pytest.mark.kafka, pytest.mark.integration),
        "spark": (pytest.mark.spark, pytest.mark.integration),
        "airflow": (pytest.mark.airflow,),
    }
    return [
        pytest.param(section, id=section.title, marks=[mark for need in section.needs for mark in marks[need]])
        for section in SECTIONS
        if section.program
    ]


def test_the_readme_has_programs_to_run() -> None:
    assert {section.title for section in SECTIONS if section.program} >= {"Five minutes in Python", "Spark", "Airflow"}


@pytest.mark.parametrize("section", programs())
def test_the_programs_of_a_section_run_and_print_what_is_shown(
    section: Section, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = section.program
    if "kafka" in section.needs:
        program = program.replace(BROKER, request.getfixturevalue("kafka").bootstrap_servers)
    (tmp_path / "readme.py").write_text(program)

    ran = subprocess.run(
        [sys.executable, "readme.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, CHECKOUT / "plugins"))),
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    for shown in section.prints:
        assert shown in ran.stdout


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(TARGET.findall(page.read_text()))
        assert named <= targets, page
    assert {"demo", "test", "down", "check", "help"} <= set(TARGET.findall(README.read_text()))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_would_start(command: str) -> None:
    words = shlex.split(command)
    match words:
        case ["make", target]:
            subprocess.run(["make", "--dry-run", target], cwd=CHECKOUT, check=True, capture_output=True)
        case [".local/venv/bin/python", script, *_]:
            subprocess.run(
                [sys.executable, script, "--help"],
                cwd=CHECKOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, CHECKOUT / "plugins")))},
                check=True,
                capture_output=True,
            )
        case ["export", assignment]:
            assert assignment.startswith(("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT={", "DYNAMIC_TABLE_WAREHOUSE="))
        case ["dynamic-table", *_] | ["printf", *_]:
            assert command in command_line().text
        case _:
            pytest.fail(f"nobody checks {command!r}; teach this test how")


def test_the_command_line_answers_as_the_readme_says(tmp_path: Path) -> None:
    bin_folder = str(Path(sys.executable).parent)

    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command_line().text],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert re.search(r"1\s+small\s+2\s+large", ran.stdout)
    assert '"row_count": 2' in ran.stdout


def command_line() -> Block:
    (section,) = [each for each in SECTIONS if each.title == "On the command line"]
    (block,) = [each for each in section.blocks if each.language == "bash"]
    return block


def test_the_demo_is_there_and_can_be_imported() -> None:
    import demo

    assert callable(demo.main)


def test_every_path_that_the_readme_names_exists() -> None:
    text = re.sub(r"^<!--.*?-->$", "", README.read_text(), flags=re.MULTILINE)
    python = re.compile(r"^```(?:python|mermaid|text)\n.*?^```$", re.MULTILINE | re.DOTALL)
    named = set(NAMED_PATH.findall(python.sub("", text)))

    missing = {path for path in named if not any((CHECKOUT / home / path).exists() for home in HOMES)}

    assert len(named) > 30
    assert {path for path in missing if not found_below(path)} == set()


def found_below(path: str) -> bool:
    """In the drawing of the tree and the life of a row, a folder or file stands below the one above it."""
    return any((CHECKOUT / "storage_lib").rglob(path.rstrip("/")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []


def test_every_extra_that_the_readme_installs_exists() -> None:
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (named,) = re.findall(r'pip install -e "\.\[([a-z,]+)\]"', README.read_text())
    assert set(named.split(",")) <= set(extras)
