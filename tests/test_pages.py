"""The examples of README.md and the pages of docs/ run, and the names on them exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fenced_blocks import Section, sections
from tests.support.line_servant import LineServant

CHECKOUT = Path(__file__).parents[1]
README = CHECKOUT / "README.md"
DOCS = CHECKOUT / "docs"
GUIDES = [
    README,
    *(DOCS / f"{name}.md" for name in ("python", "kafka", "spark", "airflow", "command-line", "demo")),
    *(
        DOCS / f"{name}.md"
        for name in ("cdc", "choosing", "iceberg", "incremental", "migration", "rejected", "sync", "verify")
    ),
    *sorted((DOCS / "tutorials").glob("*.md")),
]
"""Pages whose programs run here; tests/sql has tests of docs/sql.md."""
PAGES = [README, *sorted(DOCS.rglob("*.md")), CHECKOUT / "benchmarks" / "README.md", CHECKOUT / "docker" / "README.md"]
BROKER = "127.0.0.1:9092"
# Folders relative to which a page may give a path.
HOMES = (".", "storage_lib", "docs")
TARGET = re.compile(r"`(?:[A-Z_]+=\S+ )*make ([a-z]+)")
NAMED_PATH = re.compile(r"(?<![\w/`:.<-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|yaml|toml)|(?:[\w.-]+/)+)(?=[\s`,);:]|$)")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
INSTALL = re.compile(r"pip install '?spark-dynamic-tables\[([a-z0-9,-]+)\]")
MARKS = {
    "kafka": (pytest.mark.kafka, pytest.mark.integration),
    "spark": (pytest.mark.spark, pytest.mark.integration),
    "airflow": (pytest.mark.airflow,),
}


def pages_with_programs() -> list[object]:
    """Return each page with Python code, marked by what its sections need."""
    found: list[object] = []
    for page in GUIDES:
        # tests/spark has a server of Spark Connect, and runs a chain of streams in processes of their own; tests/cdc
        # starts a database with Debezium.
        runnable = [
            section
            for section in sections(page)
            if section.program and not section.needs & {"capture", "connect", "processes"}
        ]
        needs = sorted({need for section in runnable for need in section.needs})
        if runnable:
            marks = [mark for need in needs for mark in MARKS[need]]
            found.append(pytest.param(page, runnable, id=page.stem, marks=marks))
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the working directory of all programs: that of a JVM can't be changed."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def folder(home: Path) -> Path:
    """Return the working directory without what other pages have left there."""
    for each in home.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    return home


@pytest.fixture(scope="module")
def programs(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServant]:
    """Run one process for the programs of all pages: starting Spark takes longer than most of them."""
    beside = tmp_path_factory.mktemp("beside-the-pages")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, CHECKOUT / "plugins"))),
        "AIRFLOW_HOME": str(beside / "airflow"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command: list[str | Path] = [sys.executable, CHECKOUT / "tests" / "support" / "page_programs.py"]
    servant = LineServant(command, beside / "programs.log", environment=environment, cwd=home)
    yield servant
    servant.close()


@pytest.mark.parametrize(("page", "runnable"), pages_with_programs())
def test_the_programs_of_a_page_run_in_one_folder_and_print_what_is_shown(
    page: Path, runnable: list[Section], programs: LineServant, folder: Path, request: pytest.FixtureRequest
) -> None:
    for section in runnable:
        program = section.program
        if "kafka" in section.needs:
            program = program.replace(BROKER, request.getfixturevalue("kafka").bootstrap_servers)
        (folder / "program.py").write_text(program)

        ran = programs.ask({"program": "program.py"})

        assert not ran["failure"], f"{page.name}, {section.title}:\n{ran['failure']}"
        for shown in section.prints:
            assert shown in ran["printed"], f"{page.name}, {section.title}"


def test_every_guide_has_something_to_run() -> None:
    silent = [
        page.name for page in GUIDES if not any(section.blocks for section in sections(page)) and page.stem != "demo"
    ]

    assert silent == []


def test_the_readme_is_two_screens() -> None:
    assert len(README.read_text().splitlines()) <= 105


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(TARGET.findall(page.read_text()))
        assert named <= targets, page
    assert {"demo", "test", "check", "help"} <= set(TARGET.findall(README.read_text()))


def commands() -> list[object]:
    """Return each shell command that a guide shows, with its page."""
    return [
        pytest.param(block.text, line, id=f"{page.stem}: {line[:60]}")
        for page in GUIDES
        for section in sections(page)
        for block in section.blocks
        if block.language == "bash"
        for line in block.text.splitlines()
    ]


@pytest.mark.parametrize(("whole", "command"), commands())
def test_every_command_would_start(whole: str, command: str) -> None:
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
        case ["export", assignment] if assignment.startswith("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT={"):
            pass  # tests/plugins tests the connection's content
        case ["export", _] | ["dynamic-table", *_] | ["printf", *_]:
            assert whole == command_line()
        case _:
            pytest.fail(f"nobody checks {command!r}; teach this test how")


def test_the_command_line_answers_as_its_page_says(tmp_path: Path) -> None:
    bin_folder = str(Path(sys.executable).parent)

    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command_line()],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert re.search(r"1\s+small\s+2\s+large", ran.stdout)
    assert '"row_count": 2' in ran.stdout


def command_line() -> str:
    (block,) = [
        block
        for section in sections(DOCS / "command-line.md")
        for block in section.blocks
        if block.language == "bash" and "dynamic-table" in block.text
    ]
    return block.text


def test_the_demo_is_there_and_can_be_imported() -> None:
    import demo

    assert callable(demo.main)


@pytest.mark.parametrize("page", [*GUIDES, DOCS / "architecture.md"], ids=lambda page: page.stem)
def test_every_path_that_a_guide_names_exists(page: Path) -> None:
    text = re.sub(r"^<!--.*?-->$", "", page.read_text(), flags=re.MULTILINE)
    code = re.compile(r"^```(?:python|mermaid|text)\n.*?^```$", re.MULTILINE | re.DOTALL)
    named = set(NAMED_PATH.findall(code.sub("", text)))

    missing = {path for path in named if not any((CHECKOUT / home / path).exists() for home in HOMES)}
    missing = {path for path in missing if not (page.parent / path).exists()}

    assert {path for path in missing if not found_below(path)} == set()


def found_below(path: str) -> bool:
    """Return whether a path exists below any folder: drawings of the tree show only the last part."""
    return any((CHECKOUT / "storage_lib").rglob(path.rstrip("/")))


def test_every_link_leads_somewhere() -> None:
    links = [(page, target) for page in PAGES for target in LINK.findall(page.read_text())]

    broken = [(page, target) for page, target in links if not (page.parent / target).exists()]
    assert [f"{page.relative_to(CHECKOUT)}: {target}" for page, target in broken] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, found = set(), [README]
    while found:
        page = found.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        found += [(page.parent / target).resolve() for target in LINK.findall(page.read_text())]

    assert {page.name for page in DOCS.glob("*.md")} - {page.name for page in seen} == set()


def test_every_extra_that_a_page_installs_exists() -> None:
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for page in PAGES for found in INSTALL.findall(page.read_text()) for extra in found.split(",")}

    assert {"airflow", "kafka", "spark"} <= named <= set(extras)
