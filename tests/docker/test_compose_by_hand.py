"""The compose file's own commands, settings and health checks, run without containers as far as possible.

Those of Airflow are run against a real Airflow in ``tests/dags/test_airflow_end_to_end.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka.admin import KafkaAdminClient, NewTopic

from docker.make_secrets import make_secrets
from local_kafka import LocalKafka
from local_postgres import LocalPostgres, find_programs
from local_process import LOOPBACK, free_port
from local_s3 import PROGRAM as S3_PROGRAM
from tests.support.spark_processes import clean_environment
from tests.support.waiting import wait_until

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "docker" / "compose.yaml").read_text())
BESIDE_PYTHON = Path(sys.executable).parent

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
# Opens the tables with nothing but the settings of Airflow's containers.
OPEN = """
import pyarrow as pa
from airflow.configuration import conf
from dynamic_table.hook import DynamicTableHook
table = DynamicTableHook().get_conn().create_table("shop.orders", pa.schema([("id", pa.int64())]), options=NO_LOG)
table.append(pa.table({"id": [1, 2]}))
print(conf.get("database", "sql_alchemy_conn"), table.to_arrow().num_rows, table.address.name)
""".replace("NO_LOG", repr({"log.system": "none"}))


COUNT = """
import sys
from storage_lib.spark import session
executor = {"spark.executor.memory": "600m", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
print(session(master=sys.argv[1], conf=executor).range(7).count())
"""


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Start master and worker with the compose file's commands; only hosts, ports and directories are replaced."""
    master = str(free_port())
    # Both serve their pages at 8081, each in its own container; for a worker that is the default.
    pages = {"spark-master": str(free_port()), "spark-worker": str(free_port())}

    def here(name: str, word: str) -> str:
        word = word.replace("7077", master).replace("8081", pages[name])
        return word.replace("spark-master", LOOPBACK).replace("/tmp/spark-work", str(tmp_path))  # noqa: S108

    environment = {**clean_environment(), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    make_secrets(tmp_path / "secrets")
    environment["SPARK_CONF_DIR"] = str(tmp_path / "secrets")
    environment["SPARK_WORKER_WEBUI_PORT"] = pages["spark-worker"]
    environment["PATH"] = f"{BESIDE_PYTHON}{os.pathsep}{os.environ['PATH']}"

    def healthy(name: str) -> bool:
        how, *check = COMPOSE["services"][name]["healthcheck"]["test"]
        assert how == "CMD"
        asked = subprocess.run([here(name, word) for word in check], env=environment, capture_output=True, check=False)
        return asked.returncode == 0

    with ExitStack() as running:

        def start(name: str, said: str = "", **changed: str) -> None:
            log = running.enter_context((tmp_path / f"{said or name}.log").open("wb"))
            words = [here(name, word) for word in COMPOSE["services"][name]["command"]]
            process = subprocess.Popen(words, env={**environment, **changed}, stdout=log, stderr=log)
            running.callback(process.wait, 20)
            running.callback(process.terminate)

        def log_of(name: str) -> str:
            return (tmp_path / f"{name}.log").read_text()

        address = f"spark://{LOOPBACK}:{master}"
        yield {"start": start, "healthy": healthy, "log": log_of, "master": address, "environment": environment}


@pytest.mark.spark
def test_spark_is_healthy_and_serves_who_knows_its_secret_and_nobody_else(
    spark: dict[str, Any], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert not spark["healthy"]("spark-master")

    spark["start"]("spark-master")
    wait_until(lambda: spark["healthy"]("spark-master"))
    spark["start"]("spark-worker")
    wait_until(lambda: spark["healthy"]("spark-worker"))
    wait_until(lambda: "Successfully registered with master" in spark["log"]("spark-worker"))

    spark["start"]("spark-worker", "stranger", SPARK_CONF_DIR=str(other), SPARK_WORKER_WEBUI_PORT="0")
    wait_until(lambda: "Failed to connect to master" in spark["log"]("stranger"))
    assert "Successfully registered" not in spark["log"]("stranger")

    environment = {**spark["environment"], "PYTHONPATH": os.pathsep.join(sys.path)}
    counted = subprocess.run(
        [sys.executable, "-c", COUNT, spark["master"]], env=environment, capture_output=True, text=True, check=False
    )
    assert counted.stdout.split()[-1:] == ["7"], counted.stderr[-2000:]
    secret = (tmp_path / "secrets" / "spark-defaults.conf").read_text().split()[3]
    assert secret not in counted.stdout + counted.stderr + spark["log"]("spark-master") + spark["log"]("spark-worker")


@pytest.mark.s3
@pytest.mark.airflow
@pytest.mark.skipif(not S3_PROGRAM.exists(), reason="the S3 server is not built; run `make servers`")
def test_airflow_reaches_the_store_by_the_secrets_that_were_made_for_both(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    port, store = str(free_port()), COMPOSE["services"]["s3"]

    def here(word: str) -> str:
        word = word.replace("$$", "$").replace("/run/secrets", str(tmp_path / "secrets")).replace("s3:7070", f":{port}")
        word = word.replace("127.0.0.1:7070", f"{LOOPBACK}:{port}").replace(" :7070", f" {LOOPBACK}:{port}")
        return word.replace("versitygw --", f"{S3_PROGRAM} --").replace("/store", str(tmp_path / "store"))

    def healthy() -> bool:
        return subprocess.run([here(word) for word in store["healthcheck"]["test"][1:]], check=False).returncode == 0

    assert not healthy()
    # Only the image contains PostgreSQL's drivers.
    database = tmp_path / "secrets" / "airflow_database"
    database.write_text(f"sqlite:///{tmp_path}/airflow.db")
    connections = tmp_path / "secrets" / "airflow_connections.json"
    connections.write_text(connections.read_text().replace("http://s3:7070", f"http://{LOOPBACK}:{port}"))
    given = COMPOSE["services"]["airflow-scheduler"]["environment"]
    environment = {**os.environ, **{name: here(value) for name, value in given.items()}}
    environment |= {"AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([here(word) for word in (*store["entrypoint"], *store["command"])]) as running:
        try:
            wait_until(healthy)
            opened = subprocess.run(
                [sys.executable, "-c", OPEN], env=environment, capture_output=True, text=True, check=False
            )
        finally:
            running.terminate()

    assert opened.stdout.split()[-3:] == [database.read_text(), "2", "shop.orders"], opened.stderr
    assert (tmp_path / "store" / "lake" / "warehouse" / "shop.db" / "orders" / "schema" / "schema-0").is_file()


@pytest.mark.postgres
@pytest.mark.skipif(find_programs() is None, reason="there is no PostgreSQL; `make servers` says how to get it")
def test_the_health_check_of_the_database_tells_whether_it_is_there(tmp_path: Path) -> None:
    programs = find_programs()
    assert programs is not None
    program, *arguments = COMPOSE["services"]["postgres"]["healthcheck"]["test"][1:]

    def healthy(uri: str) -> bool:
        host, port = uri.rpartition("@")[2].partition("/")[0].split(":")
        environment = {**os.environ, "PGHOST": host, "PGPORT": port}
        return subprocess.run([programs / program, *arguments], env=environment, check=False).returncode == 0

    with LocalPostgres(tmp_path) as postgres:
        uri = postgres.uri
        assert healthy(uri)
    assert not healthy(uri)


@pytest.mark.kafka
def test_a_broker_comes_up_with_the_compose_files_settings(tmp_path: Path) -> None:
    """The image spells settings as variables: KAFKA_, capitals, underscores for dots."""
    given = COMPOSE["services"]["kafka"]["environment"]
    settings = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in given.items()}
    # Hosts, ports and directories are replaced.
    where = ("node.id", "process.roles", "controller.", "listener", "advertised.", "inter.broker.", "log.dirs")
    settings = {name: value for name, value in settings.items() if not name.startswith(where)}
    assert len(settings) == 8

    with LocalKafka(tmp_path, settings=settings) as kafka:
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        try:
            admin.create_topics([NewTopic("orders", 2, -1)])
            # The controller confirms a topic before the broker's metadata contains it.
            wait_until(lambda: "orders" in admin.list_topics())
        finally:
            admin.close()
