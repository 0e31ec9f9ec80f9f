"""Good and bad answers of a token service: the credentials or the error of each, which repeats no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from local_process import LOOPBACK, free_port
from storage_lib.errors import InvalidInputError, StorageError, UnavailableError
from tests.support.extras import needs

pytestmark = needs("botocore", "obstore")

ROLE = "arn:aws-cn:iam::000000000000:role/a/b"
KEYS = {"s3.access-key": "key", "s3.secret-key": "secret", "s3.region": "us-east-1"}
SECRETS = ("THE-SECRET-KEY", "THE-TOKEN")
GOOD = (
    '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
    f"<AccessKeyId>A</AccessKeyId><SecretAccessKey>{SECRETS[0]}</SecretAccessKey>"
    f"<SessionToken>{SECRETS[1]}</SessionToken><Expiration>2030-01-01T00:00:00Z</Expiration>"
    "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
)


def _error(code: str) -> str:
    return f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"


@contextmanager
def _answering(status: int, body: str, signed: list[str] | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if signed is not None:
                signed.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer((LOOPBACK, 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _credentials(address: str, options: Mapping[str, str] = KEYS) -> object:
    from storage_lib.serve.vending.assumed_role import AssumedRole

    return AssumedRole(ROLE, options, address=address).credentials(session="client-a", policy="{}", seconds=900)


def test_credentials_are_what_the_service_answers() -> None:
    with _answering(200, GOOD) as address:
        found = _credentials(address)

    assert repr(found) == "StoreCredentials(access_key='A', expires_millis=1893456000000)"


def test_the_keys_of_the_warehouse_sign_the_request_however_they_are_spelled() -> None:
    spelled = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "eu-west-1"}
    signed: list[str] = []

    with _answering(200, GOOD, signed) as address:
        _credentials(address, spelled)

    (header,) = signed
    assert re.search(r"Credential=key/\d{8}/eu-west-1/sts/", header)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, GOOD[:-60]),
        (200, GOOD.replace("2030-01-01T00:00:00Z", "soon")),
        (200, GOOD.replace("<AccessKeyId>A</AccessKeyId>", "")),
        (200, GOOD.replace("Credentials>", "Others>")),
        (200, "<html>a proxy</html>"),
        (200, '{"a": 1}'),
        (200, ""),
        (500, "down"),
        (503, _error("ServiceUnavailable")),
        (400, _error("Throttling")),
    ],
)
def test_a_service_that_gives_none_is_asked_again_later(status: int, body: str) -> None:
    with _answering(status, body) as address, pytest.raises(UnavailableError, match="gave no credentials") as failed:
        _credentials(address)

    assert not any(each in str(failed.value) for each in SECRETS)
    assert failed.value.__cause__ is None or not any(each in str(failed.value.__cause__) for each in SECRETS)


@pytest.mark.parametrize("code", ["AccessDenied", "PackedPolicyTooLarge", "InvalidClientTokenId"])
def test_a_service_that_refuses_is_not(code: str) -> None:
    from storage_lib.serve.vending.store_credentials import CredentialsRefusedError

    with _answering(403, _error(code)) as address, pytest.raises(CredentialsRefusedError, match=code):
        _credentials(address)


def test_a_service_that_can_t_be_reached_is_asked_again_later() -> None:
    with pytest.raises(UnavailableError, match="gave no credentials of the role"):
        _credentials(f"http://{LOOPBACK}:{free_port()}")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="can't use the token service nowhere"):
        _credentials("nowhere")


@pytest.mark.parametrize("role", ["", "reports", "arn:aws:iam::12:role/a", "arn:aws:iam::000000000000:user/a"])
def test_a_name_that_is_not_a_role_s_is_refused(role: str) -> None:
    from storage_lib.serve.vending.assumed_role import AssumedRole

    with pytest.raises(InvalidInputError, match="is not the name of a role"):
        AssumedRole(role, KEYS)


def test_errors_are_errors_of_the_library() -> None:
    from storage_lib.serve.vending.store_credentials import CredentialsRefusedError

    assert issubclass(CredentialsRefusedError, StorageError)
