"""Many processes on one table, with random crashes: streams, batch jobs, overwrites, compaction, expiry, a reader.

    make soak                      one hour           make soak MINUTES=10 ARGS="--seed 7 --no-spark"
    make soak ARGS=--each-fault-once                  until each fault has struck each process once

There is also a second table with an eventual log, and a Spark driver whose streams write into the table and copy it.
The clocks of the processes are wrong by an hour and more. Every process is killed (SIGKILL), or frozen for longer than
its lease and its transaction last, at random times; the broker is killed and restarted. Checkers compare files, topics
and models all the time. Prints the number of faults and the seed. Scheduling depends on the machine, so runs with the
same seed are similar, not equal.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

from local_kafka import LocalKafka
from storage_lib import DynamicTable, open_catalog
from tests.soak.eventual_checker import EventualChecker
from tests.soak.eventual_model import EVENTUAL_TABLE
from tests.soak.soak_checker import SoakChecker, assert_same_content
from tests.soak.soak_faults import KILL, KILL_EVERYBODY, KILL_THE_BROKER, ChanceFaults, EachFaultOnce, Faults
from tests.soak.soak_model import LAST, SPARK, WRITERS, rows_of
from tests.soak.soak_worker import COMPACTION, EVENTUAL_ROLES, READER, work
from tests.soak.spark_side import SparkSide
from tests.support.broker_restart import kill_and_restart
from tests.support.orders_table import COLUMNS, NAME, orders

ROLES = (*WRITERS, COMPACTION, READER, *EVENTUAL_ROLES)
OPTIONS = {
    "bucket": "2",
    "lease.timeout": "1 s",
    "log.transaction.timeout": "2 s",
    "num-sorted-run.compaction-trigger": "3",
}
BROKER = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
SPARK_LIVES_SECONDS = (25.0, 75.0)
SPARK_IS_FROZEN = 0.2
CLOCKS_AHEAD_SECONDS = (0, 0, 5400, -5400)
FROZEN_SECONDS_MAX = 4.0
PAUSE_SECONDS_MAX = 0.8
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["storage_lib", "kafka", "tests.soak.soak_worker"])


class Soak:
    """One table, its processes, and the faults injected into them."""

    def __init__(self, directory: Path, broker: LocalKafka, seed: int, *, with_spark: bool) -> None:
        self._broker = broker
        self._seed = seed
        self.dice = random.Random(seed)  # noqa: S311  chance, not secrets
        self._warehouse, self._notes = str(directory / "warehouse"), directory / "notes"
        self._notes.mkdir()
        self._catalog = {"log.kafka.bootstrap.servers": broker.bootstrap_servers}
        topic = f"soak-{os.urandom(4).hex()}"
        catalog = open_catalog(self._warehouse, self._catalog)
        self.table: DynamicTable = orders(catalog, **{"log.kafka.topic": topic, **OPTIONS})
        eventual = {**OPTIONS, "log.kafka.topic": f"{topic}-eventual", "log.consistency": "eventual"}
        keys = {"primary_key": ["dt", "id"], "partition_by": ["dt"]}
        readings = catalog.create_table(EVENTUAL_TABLE, COLUMNS, options=eventual, **keys)  # type: ignore[arg-type]
        self.eventual = EventualChecker(readings, broker.bootstrap_servers, seed, self._notes)
        self._spark = SparkSide(catalog, self._notes, broker.bootstrap_servers, seed) if with_spark else None
        self._spark_harm_at = 0.0
        self._processes: dict[str, BaseProcess] = {}
        self._frozen: dict[str, float] = {}
        self.checker = SoakChecker(self.table, broker.bootstrap_servers, seed, self._notes)
        self.survived: Counter[str] = Counter()

    def run(self, faults: Callable[[], Faults]) -> None:
        """Run until all faults have struck and everything is checked; raise ``AssertionError`` at the first difference.

        ``faults`` is called when everything runs.
        """
        try:
            if self._spark is not None:
                self._spark.start()
                self._spark.wait_until_it_follows_the_log()
                self._spark_harm_at = time.monotonic() + self.dice.uniform(*SPARK_LIVES_SECONDS)
            for role in ROLES:
                self._start(role)
            chosen = faults()
            while not chosen.have_all_struck():
                time.sleep(self.dice.uniform(0, PAUSE_SECONDS_MAX))
                self._thaw()
                self._do_harm(chosen.draw(self._frozen, self.checker.model.commits))
                self._do_harm_to_spark()
                self._complain_of_the_dead()
                self.checker.check()
                self.eventual.check()
        finally:
            for role in ROLES:
                self._kill(role)
            if self._spark is not None:
                self._spark.kill()
        self._complain_of_the_dead()
        self._settle()

    def _settle(self) -> None:
        """Commit once more, so that the log is repaired after a crash; then check that everything agrees."""
        table = open_catalog(self._warehouse, self._catalog).load_table(NAME)
        table.append(rows_of(self._seed, LAST, 1), commit_user=LAST, commit_identifier=1)
        if self._spark is not None:
            self._spark.finish()
        self.checker.check_end()
        assert_same_content(table, self.checker)
        self.checker.close()
        self.eventual.check_end()
        self.eventual.close()
        if self._spark is not None:
            self._spark.assert_copied(self.checker.model)

    def _do_harm(self, fault: tuple[str, str] | None) -> None:
        if fault is None:
            return
        kind, role = fault
        if kind == KILL_THE_BROKER:
            kill_and_restart(self._broker)
        elif kind == KILL_EVERYBODY:
            for each in ROLES:
                self._kill(each)
            for each in ROLES:
                self._start(each)
        elif kind == KILL:
            self._kill(role)
            self._start(role)
        else:
            os.kill(self._pid(role), signal.SIGSTOP)
            self._frozen[role] = time.monotonic() + self.dice.uniform(0, FROZEN_SECONDS_MAX)
        self.survived[f"{kind} {role}".strip()] += 1

    def _do_harm_to_spark(self) -> None:
        """Kill or freeze the driver; less often than other processes, because a driver takes long to start."""
        if self._spark is None or time.monotonic() < self._spark_harm_at:
            return
        if self.dice.random() < SPARK_IS_FROZEN:
            self._spark.freeze(self.dice.uniform(0, FROZEN_SECONDS_MAX))
            self.survived["freeze spark"] += 1
        else:
            self._spark.kill()
            self._spark.start()
            self.survived["kill spark"] += 1
        self._spark_harm_at = time.monotonic() + self.dice.uniform(*SPARK_LIVES_SECONDS)

    def _thaw(self) -> None:
        for role, until in list(self._frozen.items()):
            if time.monotonic() >= until:
                os.kill(self._pid(role), signal.SIGCONT)
                del self._frozen[role]

    def _start(self, role: str) -> None:
        ahead = self.dice.choice(CLOCKS_AHEAD_SECONDS)
        self.survived["move the clock of a writer"] += int(ahead != 0)
        servers = self._catalog["log.kafka.bootstrap.servers"]
        arguments = (role, self._warehouse, servers, self._seed, str(self._notes), ahead)
        self._processes[role] = _PROCESSES.Process(target=work, args=arguments, name=role, daemon=True)
        self._processes[role].start()

    def _kill(self, role: str) -> None:
        self._frozen.pop(role, None)
        if role in self._processes:
            self._processes[role].kill()
            self._processes[role].join()

    def _pid(self, role: str) -> int:
        return self._processes[role].pid or 0

    def _complain_of_the_dead(self) -> None:
        for path in self._notes.glob("*.error"):
            raise AssertionError(f"{path.stem} ended by itself:\n{path.read_text()}")


def soak(
    directory: Path, *, seconds: float | None, seed: int, spares_broker: bool = False, with_spark: bool = False
) -> str:
    """Run the soak on a private broker, which is not killed if ``spares_broker``; return a summary of the faults.

    Without ``seconds`` the soak ends when each fault has struck each process once.
    """
    with LocalKafka(directory / "broker", settings=BROKER) as broker:
        run = Soak(directory, broker, seed, with_spark=with_spark)
        started = time.monotonic()

        def faults() -> Faults:
            if seconds is None:
                return EachFaultOnce(run.dice, ROLES, spares_broker=spares_broker)
            return ChanceFaults(run.dice, ROLES, seconds=seconds, spares_broker=spares_broker)

        try:
            run.run(faults)
        except BaseException as error:
            error.add_note(f"seed {seed}, after {time.monotonic() - started:.0f} s; survived {dict(run.survived)}")
            raise
    model = run.checker.model
    snapshots = run.checker.files_checked + run.eventual.files_checked
    records = run.checker.records_checked + run.eventual.records_checked
    return (
        f"seed {seed}, {(time.monotonic() - started) / 60:.1f} min: survived {run.survived.total()} faults\n"
        + "".join(f"  {count:6} {fault}\n" for fault, count in sorted(run.survived.items()))
        + f"{model.commits} commits, {model.compactions} compactions, {model.repairs} repairs of the log; "
        f"{model.newest.get(SPARK, 0)} of the commits were a Spark stream's; "
        f"{snapshots} snapshots and {records} records compared, none differed"
    )


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--each-fault-once", action="store_true", help="end when each fault struck each process once")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, default=True, help="with a Spark driver")
    parser.add_argument(
        "--broker-deaths", action=argparse.BooleanOptionalAction, default=True, help="also kill the broker"
    )
    parser.add_argument("--directory", type=Path, help="where it happens, which is left there; default: a new one")
    arguments = parser.parse_args()
    length = "each fault once" if arguments.each_fault_once else f"{arguments.minutes:g} min"
    print(f"seed {arguments.seed}, {length}", flush=True)
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        said = soak(
            directory,
            seconds=None if arguments.each_fault_once else arguments.minutes * 60,
            seed=arguments.seed,
            spares_broker=not arguments.broker_deaths,
            with_spark=arguments.spark,
        )
        print(said)
    except BaseException as error:
        error.add_note(f"table, topic and notes are left in {directory}")
        raise
    if arguments.directory is None:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
