"""The registry's API as used here, on a real registry, and errors without one."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from local_process import free_port
from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.log_store.codec.avro_records import record_written
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from tests.support.faulty_http import FaultyHttp, HttpFault

if TYPE_CHECKING:
    from local_registry import LocalRegistry

FIRST = '{"type":"record","name":"Value","fields":[{"name":"a","type":"int"}]}'
SECOND = '{"type":"record","name":"Value","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'


def test_a_subject_has_versions_until_it_is_deleted(registry: LocalRegistry) -> None:
    client, subject = SchemaRegistry.of({"url": f"{registry.url}/"}), "a subject/with%signs-value"
    assert client.latest(subject) is None

    first, second = client.register(subject, FIRST), client.register(subject, SECOND)

    assert first != second
    assert pickle.loads(pickle.dumps(client)).post(subject, FIRST) == first  # noqa: S301  our own
    assert (client.schema(first), client.schema(second), client.latest(subject)) == (FIRST, SECOND, SECOND)
    client.delete(subject)
    client.delete(subject)
    assert client.latest(subject) is None
    assert client.register(subject, FIRST) > 0
    assert client.latest(subject) == FIRST
    client.delete(subject)


def registered(url: str, subject: str, schema: str, *references: tuple[str, str]) -> int:
    """Register a schema that refers to version 1 of other subjects, as Confluent's serializers do; return its id."""
    named = [{"name": name, "subject": of, "version": 1} for name, of in references]
    answer = httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": schema, "references": named})
    answer.raise_for_status()
    return int(answer.json()["id"])


def test_a_schema_is_read_with_those_it_refers_to(registry: LocalRegistry) -> None:
    """References are followed recursively."""
    money = '{"type":"record","name":"Money","namespace":"acme","fields":[{"name":"cents","type":"long"}]}'
    item = '{"type":"record","name":"Item","namespace":"acme","fields":[{"name":"price","type":"Money"}]}'
    order = (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"},'
        '{"name":"item","type":["null","acme.Item"]},{"name":"total","type":"acme.Money"}]}'
    )
    url = registry.url
    registered(url, "money", money)
    registered(url, "item", item, ("acme.Money", "money"))
    number = registered(url, "order-value", order, ("acme.Item", "item"), ("acme.Money", "money"))

    _, fields = record_written(SchemaRegistry.of({"url": url}), number)

    whole_money = json.loads(money)
    assert fields["total"] == whole_money
    item_or_null: Any = fields["item"]
    assert item_or_null[1]["fields"] == [{"name": "price", "type": whole_money}]
    for subject in ("order-value", "item", "money"):
        SchemaRegistry.of({"url": url}).delete(subject)


class KnowsThreeSchemas(BaseHTTPRequestHandler):
    """Registry of three schemas: a plain one, one with a missing reference, and one of another format."""

    def do_GET(self) -> None:
        references = [{"name": "acme.Money", "subject": "gone", "version": 3}]
        known: dict[str, dict[str, object]] = {
            "/schemas/ids/1": {"schema": FIRST},
            "/schemas/ids/2": {"schema": FIRST, "references": references},
            "/schemas/ids/3": {"schema": "{}", "schemaType": "JSON"},
        }
        self.send_response(200 if self.path in known else 404)
        self.end_headers()
        self.wfile.write(json.dumps(known.get(self.path, {})).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_a_schema_that_refers_to_nothing_is_named() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), KnowsThreeSchemas) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = SchemaRegistry.of({"url": f"http://127.0.0.1:{server.server_port}"})
        with pytest.raises(NotFoundError, match="no version 3 of subject 'gone'"):
            client.schema(2)
        with pytest.raises(NotFoundError, match="has no Avro schema of number 3"):
            client.schema(3)
        assert client.schema(1) == FIRST
        server.shutdown()

    assert client.schema(1) == FIRST, "it is asked for once"


def test_one_that_says_nothing_is_waited_for_as_long_as_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="ReadTimeout"):
            SchemaRegistry.of({"url": url, "timeout-seconds": "0.05"}).latest("s")


def test_what_a_registry_does_not_know_or_refuses_is_said(registry: LocalRegistry) -> None:
    client = SchemaRegistry.of({"url": registry.url})

    with pytest.raises(NotFoundError, match="has no schema of number 4711; is it the one of this topic"):
        client.schema(4711)
    with pytest.raises(InvalidInputError, match="refuses to POST /subjects/bad/versions"):
        client.register("bad", '{"type":"nonsense"}')
    with pytest.raises(InvalidInputError, match="does not speak Confluent's schema registry API"):
        SchemaRegistry.of({"url": registry.url.replace("ccompat/v7", "nothing")}).register("s", FIRST)


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize(
    "body", ['{"role": "admin", "Token": "SECRET"}', "SECRET of a page", '["SECRET"]', '{"message": "SECRET"}']
)
def test_what_another_server_answers_is_not_repeated(status: int, body: str) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        client = SchemaRegistry.of({"url": f"http://127.0.0.1:{server.server_port}"})
        for act in (lambda: client.latest("s"), lambda: client.fetch(1), lambda: client.post("s", "{}")):
            with pytest.raises((InvalidInputError, UnavailableError)) as refused:
                act()
            assert "SECRET" not in str(refused.value)
        server.shutdown()


def test_one_that_is_down_is_an_error_that_may_pass_and_others_are_asked(registry: LocalRegistry) -> None:
    down = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(UnavailableError, match=rf"{down} can't be reached .*Check log.schema-registry.url"):
        SchemaRegistry.of({"url": down}).register("s", FIRST)
    assert SchemaRegistry.of({"url": f"{down},{registry.url}"}).latest("s") is None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "give the URL of its Confluent API"),
        ({"url": "registry:8081"}, "is 'registry:8081'"),
        ({"url": "http://me:sesame@registry"}, r"holds a password; give log.schema-registry.username"),
        ({"url": "http://r", "usr": "me"}, "log.schema-registry.usr is unknown; known are"),
        ({"url": "http://r", "timeout-seconds": "soon"}, "'soon'; give a number of seconds"),
    ],
)
def test_options_that_can_not_be_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint) as refused:
        SchemaRegistry.of(options)

    assert "sesame" not in str(refused.value)


def test_the_password_is_not_shown() -> None:
    assert "sesame" not in repr(SchemaRegistry.of({"url": "http://r", "username": "me", "password": "sesame"}))


@pytest.mark.parametrize("fault", [HttpFault.REFUSE, HttpFault.ANSWER_503, HttpFault.DROP, HttpFault.DROP_ANSWER])
def test_a_request_that_goes_wrong_once_is_made_again(registry: LocalRegistry, fault: HttpFault) -> None:
    root, path = registry.url.split("/apis", 1)
    subject = f"faulty-{fault.name}"
    with FaultyHttp(root) as network:
        network.strike(fault, "POST", subject)
        client = SchemaRegistry.of({"url": f"{network.endpoint}/apis{path}"})

        number = client.register(subject, FIRST)

        assert network.struck == 1
        assert client.schema(number) == FIRST
        client.delete(subject)


class AsksForAName(BaseHTTPRequestHandler):
    """Registry with one user and no subject."""

    def do_GET(self) -> None:
        given = self.headers.get("Authorization")
        self.send_response(404 if given == f"Basic {b64encode(b'me:sesame').decode()}" else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_who_we_are_is_told_and_who_is_refused_hears_how_to_tell_it() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), AsksForAName) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"

        assert SchemaRegistry.of({"url": url, "username": "me", "password": "sesame"}).latest("s") is None
        with pytest.raises(
            InvalidInputError, match=r"refuses you .*give log\.schema-registry\.username and"
        ) as refused:
            SchemaRegistry.of({"url": url, "username": "you", "password": "sesame"}).latest("s")
        server.shutdown()

    assert "sesame" not in str(refused.value)
