"""The local broker: data survives restarts, errors are clear, and no process is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from java_runtime import JavaMissingError
from local_kafka import JARS, KafkaNotSetUpError, LocalKafka, LocalKafkaError, PortInUseError
from tests.support.waiting import wait_until


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalKafka]:
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    with LocalKafka(tmp_path / "kafka") as kafka:
        yield kafka


def write(kafka: LocalKafka, *values: bytes) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic("words", num_partitions=1, replication_factor=1)])["words"].result(120)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    for value in values:
        producer.produce("words", value)
    assert producer.flush(120) == 0


def read(kafka: LocalKafka, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "readers"})
    consumer.assign([TopicPartition("words", 0, 0)])
    messages = consumer.consume(count, timeout=120)
    consumer.close()
    return [message.value() for message in messages]


@pytest.mark.kafka
@pytest.mark.integration
def test_a_stopped_broker_comes_back_on_its_port_with_its_data(broker: LocalKafka) -> None:
    address = broker.bootstrap_servers
    write(broker, b"a", b"b")

    broker.stop()
    assert broker.pid is None
    broker.start()

    assert broker.bootstrap_servers == address
    assert read(broker, 2) == [b"a", b"b"]


@pytest.mark.kafka
@pytest.mark.integration
def test_a_killed_broker_comes_back_with_every_acknowledged_message(broker: LocalKafka) -> None:
    write(broker, b"a", b"b")

    broker.kill()
    assert broker.pid is None
    LocalKafka(broker.home).start()

    assert read(broker, 2) == [b"a", b"b"]


@pytest.mark.kafka
@pytest.mark.integration
def test_a_broker_listens_on_the_loopback_address_only(broker: LocalKafka) -> None:
    local = socket.create_connection(("127.0.0.1", broker.port))
    local.close()

    for address in addresses_of_this_machine():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, broker.port), timeout=5)


@pytest.mark.kafka
@pytest.mark.integration
def test_a_broker_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    script = (
        "import sys, time; from local_kafka import LocalKafka\n"
        "print(LocalKafka(sys.argv[1]).start().pid, flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(sys.modules["local_kafka"].__file__ or "").parent)},
    )
    assert owner.stdout is not None
    with owner.stdout:
        assert int(owner.stdout.readline()) == LocalKafka(tmp_path).pid

    owner.send_signal(signal.SIGKILL)
    owner.wait()

    wait_until(lambda: LocalKafka(tmp_path).pid is None)


@pytest.mark.kafka
@pytest.mark.integration
def test_a_broker_that_outlives_its_starter_is_stopped_by_another(tmp_path: Path) -> None:
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    LocalKafka(tmp_path, outlives_us=True).start()

    another = LocalKafka(tmp_path)
    assert another.pid is not None
    assert another.start().pid == another.pid
    another.stop()

    assert another.pid is None


def test_a_port_in_use_is_named_with_a_way_to_find_out_by_whom(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=rf"Port {port} .* in use.*lsof -i :{port}"):
            LocalKafka(tmp_path, port=port, jars=pretended_jars(tmp_path)).start()


@pytest.mark.parametrize(("wanted", "starts"), [(None, 2), (29_999, 1)])
def test_a_port_lost_while_the_broker_starts_is_replaced_unless_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int | None, starts: int
) -> None:
    kafka = LocalKafka(tmp_path, port=wanted, jars=pretended_jars(tmp_path))
    launched: list[object] = []
    monkeypatch.setattr(kafka, "_format_once", lambda _java: None)
    monkeypatch.setattr(kafka._process, "launch", lambda *command: launched.append(command))

    def wait(_port: int, _deadline: float) -> None:
        if len(launched) == 1:
            raise PortInUseError("taken meanwhile")

    monkeypatch.setattr(kafka, "_wait_until_ready", wait)
    with nullcontext() if wanted is None else pytest.raises(PortInUseError):
        kafka.start()

    assert len(launched) == starts


def test_missing_jars_ask_for_make_setup(tmp_path: Path) -> None:
    with pytest.raises(KafkaNotSetUpError, match="make setup"):
        LocalKafka(tmp_path, jars=tmp_path / "nowhere").start()


def test_missing_java_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissingError, match=r"(?s)Java 17 or 21 is needed.*JAVA_HOME"):
        LocalKafka(tmp_path).start()


def test_a_broker_never_started_has_no_port_and_is_stopped_already(tmp_path: Path) -> None:
    kafka = LocalKafka(tmp_path)

    kafka.stop()

    with pytest.raises(LocalKafkaError, match="not been started"):
        _ = kafka.bootstrap_servers


def test_a_stale_pid_file_does_not_hit_a_stranger(tmp_path: Path) -> None:
    """After a reboot the process id in the file belongs to another process."""
    kafka = LocalKafka(tmp_path)
    (tmp_path / "kafka.pid").write_text(str(os.getpid()))

    assert kafka.pid is None
    kafka.kill()


def test_a_broker_that_cannot_start_shows_what_it_said(tmp_path: Path) -> None:
    """The jars are empty files, so that Java ends at once."""
    formatted = tmp_path / "data" / "meta.properties"
    formatted.parent.mkdir()
    formatted.touch()

    with pytest.raises(LocalKafkaError, match=r"(?s)ended right after its start.*kafka\.log.*kafka\.Kafka"):
        LocalKafka(tmp_path, jars=pretended_jars(tmp_path)).start()


def test_brokers_start_from_the_archive_that_setup_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "classes.jsa"
    monkeypatch.setattr("local_kafka.ARCHIVE", archive)

    assert command_of(LocalKafka(tmp_path)) == command_of(LocalKafka(tmp_path, jvm_options=()))
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in command_of(LocalKafka(tmp_path))
    assert f"-XX:SharedArchiveFile={archive}" not in command_of(LocalKafka(tmp_path, jvm_options=("-Xmx1g",)))


@pytest.mark.kafka
@pytest.mark.integration
def test_an_archive_that_does_not_fit_is_done_without(tmp_path: Path) -> None:
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    archive = tmp_path / "classes.jsa"
    archive.write_text("of another Java")

    with LocalKafka(tmp_path / "kafka", jvm_options=(f"-XX:SharedArchiveFile={archive}",)) as kafka:
        write(kafka, b"a")
        assert read(kafka, 1) == [b"a"]


def command_of(kafka: LocalKafka) -> list[str]:
    return kafka._java(Path("java"), "kafka.Kafka")


def addresses_of_this_machine() -> set[str]:
    """Return the IPv4 addresses of this machine's network interface; empty without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing, only selects the route
        except OSError:
            return set()
        return {probe.getsockname()[0]} - {"127.0.0.1"}


def pretended_jars(folder: Path) -> Path:
    jars = folder / "lib"
    jars.mkdir()
    (jars / "kafka_2.13-0.0.0.jar").touch()
    return jars
