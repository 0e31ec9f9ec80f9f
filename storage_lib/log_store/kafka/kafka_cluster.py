"""This process's connections to one Kafka cluster: find leaders and coordinators, send requests, retry.

Only this file and ``kafka_connections.py``, which says of which versions, use kafka-python's private names. Other
modules see requests, responses and ``Retries``. All stores of the process with the same options share
connections, which outlive the stores, so that a stream's many short-lived stores do not reconnect.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest

from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.log_store.kafka.kafka_connections import KafkaConnections, refuse_for_good

if TYPE_CHECKING:
    from uuid import UUID

    from storage_lib.io.environment import Clock

_PAUSE_SECONDS_MIN = 0.001
_PAUSE_GROWTH = 1.5
_PAUSE_SECONDS_MAX = 0.5
_ANSWER_SECONDS_BEYOND_TIMEOUT = 5.0
_ABSENCE_SHARE = 6
_RECONNECT_MS_MAX = 1_000
_IN_FLIGHT_MAX = 10_000
_TOPIC_ID_SECONDS = 1.0
_RESPONSE_BYTES_MAX = 1 << 30
_FIND_COORDINATORS_VERSION_MIN = 4

CLIENT_DEFAULTS: Mapping[str, object] = {
    key: default
    for key, default in KafkaConnectionManager.DEFAULT_CONFIG.items()
    if key not in {"metrics", "metric_group_prefix", "api_version", "ssl_context", "sasl_oauth_token_provider"}
}
"""The options of the client that can be spelled as text, with their defaults."""

_SHARED: dict[tuple[int, tuple[tuple[str, object], ...]], KafkaCluster] = {}
_SHARED_LOCK = threading.Lock()


@dataclass(slots=True)
class Retries:
    """Retries of one operation: growing pauses until ``deadline``, then ``UnavailableError``."""

    clock: Clock
    deadline: float
    servers: str
    act: str
    limit_ms: int
    pause_seconds: float = _PAUSE_SECONDS_MIN
    _absent_since: float | None = None

    def believes_absence(self) -> bool:
        """Whether to accept the answer that a topic does not exist: only after a sixth of the limit has passed.

        A restarting broker that is still loading its metadata, or a broker that learns of a new topic later than
        others, reports existing topics as unknown.
        """
        now = self.clock.monotonic()
        if self._absent_since is None:
            self._absent_since = now
        return now - self._absent_since >= self.limit_ms / 1_000 / _ABSENCE_SHARE

    def wait(self, reason: object) -> None:
        """Sleep before the next attempt; raise ``UnavailableError`` if the next attempt would miss the deadline."""
        if self.clock.monotonic() + self.pause_seconds > self.deadline:
            is_silent = isinstance(reason, kafka.errors.NodeNotReadyError) or reason == "NodeNotReadyError"
            why = "no broker answers" if is_silent else str(reason).removeprefix("KafkaConnectionError: ")
            message = (
                f"could not {self.act} within {self.limit_ms} ms: {why}. Is Kafka running at {self.servers}, and can "
                "it be reached from here? Try again when it is"
            )
            raise UnavailableError(message) from (reason if isinstance(reason, BaseException) else None)
        self.clock.sleep(self.pause_seconds)
        self.pause_seconds = min(_PAUSE_SECONDS_MAX, self.pause_seconds * _PAUSE_GROWTH)


class KafkaCluster:
    """Connections to the brokers of one cluster. Thread-safe; usually created by ``shared``."""

    def __init__(self, client_config: Mapping[str, object], limit_ms: int) -> None:
        """Start the event loop; the first request connects."""
        self._servers = str(client_config["bootstrap_servers"])
        self._limit_ms = limit_ms
        config = {
            "receive_message_max_bytes": _RESPONSE_BYTES_MAX,
            "reconnect_backoff_max_ms": _RECONNECT_MS_MAX,
            "max_in_flight_requests_per_connection": _IN_FLIGHT_MAX,
            "request_timeout_ms": limit_ms,
            **client_config,
        }
        self._answer_seconds = limit_ms / 1_000 + _ANSWER_SECONDS_BEYOND_TIMEOUT
        self._net = NetworkSelector(slow_task_threshold_secs=0)
        self._manager = KafkaConnections(self._net, **config)
        self._net.start()
        self._connecting = threading.Lock()
        self._leaders: dict[str, dict[int, int]] = {}
        self._topic_ids: dict[str, tuple[float, str | None]] = {}
        """Topic ids by topic, each with the time of its look-up."""
        self._coordinators: dict[str, int] = {}
        self.batch_bytes_max: dict[str, int] = {}

    @classmethod
    def shared(cls, client_config: Mapping[str, object], limit_ms: int) -> KafkaCluster:
        """Return this process's connections for these options. A forked child gets its own."""
        key = (os.getpid(), tuple(sorted({**client_config, "": limit_ms}.items(), key=lambda item: item[0])))
        with _SHARED_LOCK:
            cluster = _SHARED.get(key)
            if cluster is None or not cluster.is_running:
                cluster = _SHARED[key] = cls(client_config, limit_ms)
            return cluster

    def retries(self, clock: Clock, act: str) -> Retries:
        """Start the retries of one operation; ``act`` completes "could not ..." in its error."""
        deadline = clock.monotonic() + self._limit_ms / 1_000
        return Retries(clock=clock, deadline=deadline, servers=self._servers, act=act, limit_ms=self._limit_ms)

    def submit(self, node: int | None, request: object) -> Future[Any]:
        """Send a request without waiting; the future holds the response or a ``KafkaError``.

        Requests to one node are sent in the order of the calls. If ``node`` is None, any broker may answer.
        """
        answer: Future[Any] = Future()

        def start() -> None:
            try:
                pending = self._manager.send(request, node_id=node)
            except Exception as error:  # noqa: BLE001  raised to the caller that waits for the answer
                answer.set_exception(error)
                return
            pending.add_callback(answer.set_result)
            pending.add_errback(answer.set_exception)

        try:
            self._connect()
            self._net.call_soon_threadsafe(start)
        except (kafka.errors.KafkaError, InvalidInputError, RuntimeError) as error:
            answer.set_exception(error)
        return answer

    def answer(self, pending: Future[Any]) -> Any:
        """Wait for an answer. Raises ``KafkaError`` if none comes, ``InvalidInputError`` for refused credentials."""
        try:
            return pending.result(timeout=self._answer_seconds)
        except TimeoutError:
            message = "no answer"
            raise kafka.errors.KafkaTimeoutError(message) from None
        except RuntimeError as error:
            raise kafka.errors.KafkaConnectionError(str(error)) from error
        except kafka.errors.KafkaError as error:
            refuse_for_good(error, self._servers)
            raise

    def ask(self, node: int | None, request: object) -> Any:
        """Send one request and wait for its answer."""
        return self.answer(self.submit(node, request))

    def ask_all(self, requests: Iterable[tuple[int | None, object]]) -> list[Any]:
        """Send several requests at once; return the answers in order, with a ``KafkaError`` for each missing one."""
        pending = [self.submit(node, request) for node, request in requests]
        answers: list[Any] = []
        for each in pending:
            try:
                answers.append(self.answer(each))
            except kafka.errors.KafkaError as error:
                answers.append(error)
        return answers

    def leaders(self, topic: str, retries: Retries) -> Mapping[int, int]:
        """Return the leader of every Kafka partition of ``topic``. Raises ``NotFoundError`` for an unknown topic."""
        known = self._leaders.get(topic)
        while known is None:
            try:
                answer = self.ask(None, _metadata_request(topic))
                self._learn_brokers(answer)
                (described,) = answer.topics
                error = kafka.errors.for_code(described.error_code)
                leaders = {each.partition_index: each.leader_id for each in described.partitions}
                self._topic_ids[topic] = (retries.clock.monotonic(), _known(described.topic_id))
            except kafka.errors.KafkaError as failure:
                retries.wait(failure)
                continue
            if error is kafka.errors.UnknownTopicOrPartitionError and retries.believes_absence():
                message = (
                    f"Kafka at {self._servers} has no topic {topic!r}; was it deleted (dropping a table "
                    "deletes its topic), or never created?"
                )
                raise NotFoundError(message)
            if error is kafka.errors.NoError and leaders and min(leaders.values()) >= 0:
                known = self._leaders[topic] = leaders
                break
            refuse(error, topic)
            retries.wait(error.__name__)
        return known

    def topic_id(self, topic: str, retries: Retries) -> str | None:
        """Return Kafka's topic id, which changes when a topic is recreated; None from brokers before 2.8.

        Looked up at most once a second. Raises ``NotFoundError`` if the topic does not exist.
        """
        while True:
            found = self._topic_ids.get(topic)
            if found is not None and retries.clock.monotonic() - found[0] < _TOPIC_ID_SECONDS:
                return found[1]
            self._leaders.pop(topic, None)
            self.leaders(topic, retries)

    def forget_leaders(self, topic: str) -> None:
        """Drop the cached leaders after one of them turned out to be outdated; the next call looks them up."""
        self._leaders.pop(topic, None)
        self._topic_ids.pop(topic, None)
        self.batch_bytes_max.pop(topic, None)

    def coordinators(self, transactional_ids: Sequence[str], retries: Retries) -> dict[str, int]:
        """Return the broker that keeps the state of each transactional id."""
        while True:
            unknown = [each for each in transactional_ids if each not in self._coordinators]
            if not unknown:
                return {each: self._coordinators[each] for each in transactional_ids}
            request = FindCoordinatorRequest(
                key_type=CoordinatorType.TRANSACTION.value,
                coordinator_keys=unknown,
                min_version=_FIND_COORDINATORS_VERSION_MIN,
            )
            try:
                answer = self.ask(None, request)
            except kafka.errors.KafkaError as failure:
                retries.wait(failure)
                continue
            errors = []
            for each in answer.coordinators:
                error = kafka.errors.for_code(each.error_code)
                if error is kafka.errors.NoError:
                    self._coordinators[each.key] = each.node_id
                else:
                    refuse(error, each.key)
                    errors.append(error.__name__)
            if errors:
                retries.wait(errors[0])

    def forget_coordinator(self, transactional_id: str) -> None:
        """Drop the cached coordinator; the next call looks it up."""
        self._coordinators.pop(transactional_id, None)

    def close(self) -> None:
        """Close the connections and end the event loop."""
        if self.is_running:
            with contextlib.suppress(kafka.errors.KafkaError):
                self._manager.run(self._manager.close)
        self._net.close()

    @property
    def is_running(self) -> bool:
        """Whether the event loop is still running."""
        thread = self._net._io_thread  # noqa: SLF001  kafka-python has no public name for it
        return thread is not None and thread.is_alive()

    def _connect(self) -> None:
        if self._manager.bootstrapped:
            return
        with self._connecting:
            if not self._manager.bootstrapped:
                self._manager.connect(self._limit_ms)

    def _learn_brokers(self, metadata: Any) -> None:
        """Pass the brokers' addresses, which may have changed since the first connection, to the client."""
        self._net.call_soon_threadsafe(_call_with(self._manager.cluster.update_metadata, metadata))


def close_connections() -> None:
    """Close every connection of this process. Existing stores become unusable; new stores connect again.

    For long-lived processes that have finished with Kafka, or whose broker was removed: the client would otherwise try
    to reconnect forever.
    """
    with _SHARED_LOCK:
        clusters = [cluster for (pid, _), cluster in _SHARED.items() if pid == os.getpid()]
        _SHARED.clear()
    for cluster in clusters:
        cluster.close()


def refuse(error: type[Exception], name: str) -> None:
    """Raise ``InvalidInputError`` for an authorization error, which no retry resolves; ignore other errors."""
    if issubclass(error, kafka.errors.AuthorizationError):
        message = (
            f"Kafka denies this user access to {name!r} ({error.__name__}); grant it DESCRIBE, READ, WRITE and "
            "DESCRIBE_CONFIGS on the topic and WRITE on transactional ids that begin with the table's uuid"
        )
        raise InvalidInputError(message)


def is_worth_retrying(error: object) -> bool:
    """Whether a ``KafkaError`` (class or object) is transient: moved leaders, lost connections, busy brokers.

    An unknown error is an exception in the broker. Kafka 4.3.1 returns one for EndTxn while it is about to abort the
    transaction by timeout; a retry then reports the abort.
    """
    kind = error if isinstance(error, type) else type(error)
    passing = (kafka.errors.RetriableError, kafka.errors.UnknownBrokerIdError, kafka.errors.UnknownError)
    return issubclass(kind, passing)


def _known(topic_id: UUID | None) -> str | None:
    return str(topic_id) if topic_id is not None and topic_id.int else None


def _metadata_request(topic: str) -> object:
    named = MetadataRequest.MetadataRequestTopic(name=topic, topic_id=None)
    return MetadataRequest(topics=[named], allow_auto_topic_creation=False)


def _call_with(function: Callable[[Any], object], argument: object) -> Callable[[], object]:
    def call() -> object:
        return function(argument)

    return call
