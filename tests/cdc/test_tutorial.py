"""The tutorial runs as it stands on its page, over the servers that it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_connect import JARS
from local_postgres import find_programs
from local_process import free_port
from tests.support.fenced_blocks import sections

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "tutorials" / "cdc-to-dashboard.md"
PORTS = {"postgres": "5432", "kafka": "9092", "connect": "8083"}

pytestmark = [pytest.mark.kafka, pytest.mark.integration]


@pytest.fixture
def servers() -> Iterator[dict[str, str]]:
    """Start the servers as `make capture` does, but on free ports; return the page's addresses with theirs."""
    if not JARS.exists():
        pytest.skip("there is no Kafka Connect with Debezium here: run `make servers`")
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL here: run `make servers`, which says how to get it")
    ports = {name: str(free_port()) for name in PORTS}
    program = [sys.executable, str(CHECKOUT / "docker" / "local" / "capture_servers.py")]
    words = [word for name, port in ports.items() for word in (f"--{name}-port", port)]
    with subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        shown = [running.stdout.readline() for _ in range(5)]
        assert shown[-1] == "Ctrl-C stops them and deletes their data\n", shown
        for name, port in ports.items():
            assert f"127.0.0.1:{port}" in "".join(shown), f"{name}: {shown}"
        yield {PORTS[name]: port for name, port in ports.items()}
        running.terminate()
        assert (running.wait(60), running.stdout.read()) == (0, "stopped\n")


def test_a_database_becomes_tables_that_equal_it_and_a_dashboard(servers: dict[str, str], tmp_path: Path) -> None:
    for section in sections(PAGE):
        program = section.program
        for page, here in servers.items():
            program = program.replace(page, here)

        ran = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

        assert ran.returncode == 0, f"{section.title}:\n{ran.stderr}"
        for shown in section.prints:
            assert shown in ran.stdout, section.title
