"""Run many cases and print a tally; stop at the first wrong case, reduce it, and print it.

    python -m tests.differential.run --seed-from 0 --seed-to 100000 --processes 2
    python -m tests.differential.run --seed-from 0 --seed-to 2000 --in-memory
    python -m tests.differential.run --seed-from 0 --seed-to 200 --spark

With ``--go-on``, print all wrong cases, unreduced.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

if __name__ == "__main__":
    # As in pytest's configuration: the modules that start the local servers are not installed.
    sys.path.append(str(Path(__file__).parents[2] / "docker" / "local"))

from local_kafka import LocalKafka
from quick_spark import quick_spark
from tests.differential.case import Case
from tests.differential.cases import random_case
from tests.differential.in_memory import InMemory
from tests.differential.on_spark import DRAINS_MAX, OnSpark, in_our_words
from tests.differential.outcome import Outcome, Tally
from tests.differential.shrink import smaller
from tests.differential.without_spark import WithoutSpark
from tests.support.memory_disk import memory_disk
from tests.support.plugins.spark_sessions import SPARK_CONF

_SECONDS_BETWEEN_WORDS = 20
_SEEDS_AT_ONCE = 20


def main(arguments: list[str] | None = None) -> int:
    said = _arguments().parse_args(arguments)
    seeds = [int(each) for each in said.seeds.split(",")] if said.seeds else range(said.seed_from, said.seed_to)
    tally, spoken = Tally(), time.monotonic()
    if said.spark:
        outcomes = on_spark(seeds, at_once=said.at_once)
    else:
        outcomes = without_spark(seeds, processes=said.processes, in_memory=said.in_memory)
    for seed, outcome in outcomes:
        tally.add(outcome)
        if outcome.verdict == "wrong":
            case = random_case(seed, drains_max=DRAINS_MAX) if said.spark else random_case(seed)
            if not said.go_on and not said.spark:
                case, outcome = shrunk(case, in_memory=said.in_memory)  # noqa: PLW2901  what is said of the smaller one
            print(report(case, outcome), flush=True)
            if not said.go_on:
                break
        if time.monotonic() - spoken > _SECONDS_BETWEEN_WORDS:
            spoken = time.monotonic()
            print(f"[{time.strftime('%H:%M:%S')}] seed {seed}: {tally.verdicts.most_common()}", flush=True)
    print(tally)
    return int(bool(tally.verdicts["wrong"]))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.differential.run", description=__doc__)
    parser.add_argument("--seed-from", type=int, default=0)
    parser.add_argument("--seed-to", type=int, default=0, help="the first seed that is not run")
    parser.add_argument("--seeds", help="these only, as 3,17")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--in-memory", action="store_true", help="on tables in memory")
    parser.add_argument("--spark", action="store_true", help="on a real Spark, with a real Kafka")
    parser.add_argument("--at-once", type=int, default=3, help="streams at a time on Spark")
    parser.add_argument("--go-on", action="store_true")
    return parser


def without_spark(seeds: Iterable[int], *, processes: int, in_memory: bool) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcome of each seed's case, in order."""
    with multiprocessing.get_context("spawn").Pool(processes, _begin, (in_memory,)) as pool:
        yield from pool.imap(_outcome, seeds, chunksize=_SEEDS_AT_ONCE)


_OF_PROCESS: list[WithoutSpark | InMemory] = []


def _begin(in_memory: bool) -> None:  # noqa: FBT001  a pool gives it by its place
    _OF_PROCESS.append(InMemory() if in_memory else WithoutSpark())


def _outcome(seed: int) -> tuple[int, Outcome]:
    return seed, _OF_PROCESS[0].run(random_case(seed))


def shrunk(case: Case, *, in_memory: bool = False) -> tuple[Case, Outcome]:
    """Return a smaller case that is also wrong without Spark, and its outcome."""
    runner = InMemory() if in_memory else WithoutSpark()
    small = smaller(case, lambda each: runner.run(each).verdict == "wrong")
    return small, runner.run(small)


def on_spark(seeds: Iterable[int], *, at_once: int) -> Iterator[tuple[int, Outcome]]:
    """Run the cases on a separate Spark and broker."""
    from storage_lib.spark import session

    os.environ.update(quick_spark())
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=memory_disk())))
        kafka = stack.enter_context(LocalKafka(directory / "kafka"))
        conf = {**SPARK_CONF, "spark.sql.warehouse.dir": str(directory / "spark-warehouse")}
        spark = session("differential", master="local[2]", conf=conf)
        stack.callback(spark.stop)
        spark.sparkContext.setLogLevel("OFF")
        runner = OnSpark(spark, directory, kafka.bootstrap_servers)
        cases = (random_case(seed, drains_max=DRAINS_MAX) for seed in seeds)
        for case, outcome in runner.run_all(cases, at_once=at_once):
            yield case.seed, outcome


def report(case: Case, outcome: Outcome) -> str:
    """Describe a wrong case for a person."""
    return f"=== seed {case.seed}: {outcome.said}\n{in_our_words(case)}\n{case}\n"


if __name__ == "__main__":
    sys.exit(main())
