"""The running example: orders joined with their category, summed by day; two queries are killed, the answer is right.

The programs are those of docs/spark.md, unchanged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from tests.support.deep_tests import thinned
from tests.support.fenced_blocks import sections
from tests.support.spark_features import rows_limit
from tests.support.spark_processes import REPOSITORY, warm_environment
from tests.support.spark_topics import committed_values
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(1500)]

(CHAIN,) = (section for section in sections(REPOSITORY / "docs" / "spark.md") if section.title == "Chained streams")
TABLES, ORDERS, TOTALS = (block.text for block in CHAIN.blocks if block.language == "python")
BROKER = "127.0.0.1:9092"
SEED = 23
LIVES = ((1, 8), (2, 14))
"""Numbers of queries that are killed, and of files of input."""
Order = tuple[int, int, str]  # auction, amount, day
MOMENTS = ("offsets", "commits", "snapshot")
"""A micro-batch is planned; Spark has recorded it as done; its rows have become visible."""


@pytest.mark.parametrize(("kills", "batches"), thinned([pytest.param(*each) for each in LIVES]))
def test_two_queries_that_are_killed_at_random_end_with_the_same_totals(
    kafka: LocalKafka, tmp_path: Path, kills: int, batches: int
) -> None:
    dice = random.Random(SEED)  # noqa: S311  chance, not secrets
    changes, orders = _changes(dice, batches)
    chain = Chain(tmp_path, kafka.bootstrap_servers, _input(changes))
    assert chain.run("tables", TABLES).wait(240) == 0, chain.said("tables")
    victims = ["orders", "daily_totals"]
    dice.shuffle(victims)

    with chain.running("orders", ORDERS), chain.running("daily_totals", TOTALS):
        for victim in victims[:kills]:
            chain.kill_after(victim, dice.choice(MOMENTS), count=dice.randint(1, 3))
        chain.give_the_rest()
        wait_until(lambda: chain.totals() == _totals(orders), seconds=600)
        # A snapshot is visible before its records are: killed between them, only the next start completes the log.
        wait_until(lambda: chain.is_idle("daily_totals"), seconds=60)

    told = Counter(
        (each["op"], (each["after"] or each["before"])["order_id"]) for each in committed_values(chain.table("orders"))
    )
    assert told == Counter((op, key) for op, key, _ in changes), "each change is in the log of the first table once"
    there: dict[tuple[str, int], tuple[int, int]] = {}
    for each in committed_values(chain.table("daily_totals")):
        row = each["after"] or each["before"]
        there.pop((row["dt"], row["category_id"]), None)
        if each["op"] != "d":
            there[row["dt"], row["category_id"]] = (row["orders"], row["turnover"])
    assert there == _totals(orders)


class Chain:
    """The tables, and the two queries as processes that are restarted after a kill."""

    def __init__(self, directory: Path, servers: str, files: list[str]) -> None:
        self._directory = directory
        self._servers = servers
        self._files = list(enumerate(files))  # not delivered yet
        (directory / "incoming").mkdir()
        self._database = f"shop_{os.urandom(4).hex()}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._programs: dict[str, str] = {}

    def run(self, name: str, program: str) -> subprocess.Popen[bytes]:
        path = self._directory / f"{name}.py"
        # All tests of the session share the topics, whose names derive from that of the directory.
        program = program.replace(BROKER, self._servers).replace("shop.", f"{self._database}.")
        path.write_text(program if rows_limit(40) else program.replace(", rows_per_trigger_max=40", ""))
        with (self._directory / f"{name}.log").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, path.name],
                cwd=self._directory,
                env={**warm_environment(), "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @contextmanager
    def running(self, name: str, program: str) -> Iterator[None]:
        self._programs[name] = program
        self._running[name] = self.run(name, program)
        try:
            yield
        finally:
            self._kill(name)

    def kill_after(self, name: str, moment: str, *, count: int) -> None:
        """Kill the query ``count`` batches later, with its JVM and all workers; then restart it."""
        for _ in range(count):
            # With all its input at once, one query could finish before the other one has started.
            before = self._count(name, moment)
            self._give()
            self._await_more(name, moment, before)
        self._kill(name)
        self._running[name] = self.run(name, self._programs[name])

    def give_the_rest(self) -> None:
        while self._files:
            self._give()

    def table(self, name: str) -> DynamicTable:
        catalog = open_catalog(str(self._directory / "warehouse"), {"log.kafka.bootstrap.servers": self._servers})
        return catalog.load_table(f"{self._database}.{name}")

    def said(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text()[-4000:]

    def totals(self) -> dict[tuple[str, int], tuple[int, int]]:
        self._all_run()
        rows = self.table("daily_totals").to_arrow().to_pylist()
        return {(row["dt"], row["category_id"]): (row["orders"], row["turnover"]) for row in rows}

    def is_idle(self, name: str) -> bool:
        """Return whether Spark has recorded each micro-batch that it has planned as done."""
        return self._all_run() and self._count(name, "commits") == self._count(name, "offsets")

    def _count(self, name: str, moment: str) -> int:
        if moment == "snapshot":
            return self.table(name).context.file_store.snapshots.latest_id() or 0
        return len(list((self._directory / "checkpoints" / name / moment).glob("[0-9]*")))

    def _await_more(self, name: str, moment: str, before: int) -> None:
        wait_until(lambda: self._all_run() and self._count(name, moment) > before, seconds=600)

    def _all_run(self) -> bool:
        for name, process in self._running.items():
            assert process.poll() is None, self.said(name)
        return True

    def _give(self) -> None:
        number, text = self._files.pop(0)
        path = self._directory / f"{number:03}.json"
        path.write_text(text)
        # Spark reads files in the order of their modification times, which must be distinct.
        os.utime(path, (1_700_000_000 + number,) * 2)
        path.rename(self._directory / "incoming" / path.name)

    def _kill(self, name: str) -> None:
        process = self._running[name]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _changes(dice: random.Random, batches: int) -> tuple[list[tuple[str, int, Order]], dict[int, Order]]:
    """Return (op, id, order) of every change, some of them of existing orders, and the resulting orders."""
    orders: dict[int, Order] = {}
    changes = []
    for step in range(batches * 10):
        key = dice.choice(sorted(orders)) if orders and dice.random() < 0.5 else step
        op = ("d" if dice.random() < 0.3 else "u") if key in orders else "c"
        # Auctions outside the dimension have no category.
        order = (
            orders.pop(key) if op == "d" else (dice.randrange(10), dice.randrange(100), f"2024-05-1{dice.randrange(3)}")
        )
        if op != "d":
            orders[key] = order
        changes.append((op, key, order))
    return changes, orders


def _input(changes: list[tuple[str, int, Order]]) -> list[str]:
    """Return the lines of each file."""
    kinds = {"c": "+I", "u": "+U", "d": "-D"}
    lines = [
        json.dumps(
            {
                "_row_kind": kinds[op],
                "order_id": key,
                "auction_id": auction,
                "trans_amount": amount,
                "create_time": f"{day}T12:00:00",
            }
        )
        for op, key, (auction, amount, day) in changes
    ]
    return ["\n".join(lines[start : start + 10]) for start in range(0, len(lines), 10)]


def _totals(orders: dict[int, Order]) -> dict[tuple[str, int], tuple[int, int]]:
    totals: dict[tuple[str, int], tuple[int, int]] = {}
    for auction, amount, day in orders.values():
        key = (day, auction % 3 if auction < 8 else -1)
        count, turnover = totals.get(key, (0, 0))
        totals[key] = (count + 1, turnover + amount)
    return totals
