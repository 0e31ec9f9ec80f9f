from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage_lib import InvalidInputError
from tests.support.extras import needs
from tests.support.served_catalogs import CLIENTS, TOKENS, client_file

pytestmark = needs("fastapi")

GOOD = {"name": '"reports"', "token": '"reports-0123456789abcdef"', "read": '["shop"]'}


def text_of(changed: dict[str, str | None] | None = None) -> str:
    lines = {**GOOD, **(changed or {})}
    return "\n".join(["[[client]]", *(f"{key} = {value}" for key, value in lines.items() if value is not None)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"has to be a list of \[\[client\]\]"),
        ("token = 'x'", r"has to be a list of \[\[client\]\]"),
        ("client = []", r"has to be a list of \[\[client\]\]"),
        ("client = [1]", "unknown key"),
        ("[[client", "not TOML: error at"),
        (text_of({"name": None}), "name has to be"),
        (text_of({"name": '"a b"'}), "name has to be"),
        (text_of({"token": None}), "token has to be"),
        (text_of({"token": '"0123456789"'}), "token has to be"),
        (text_of({"token": '"sesame sesame sesame sesame"'}), "token has to be"),
        (text_of({"read": '"shop"'}), "read has to be a list"),
        (text_of({"read": '["shop.orders"]'}), "read has to be a list"),
        (text_of({"write": '["../x"]'}), "write has to be a list"),
        (text_of({"expires": '"2027-01-01"'}), "expires has to be a time with a zone"),
        (text_of({"expires": "2027-01-01T00:00:00"}), "expires has to be a time with a zone"),
        (text_of({"reads": '["shop"]'}), "unknown key"),
        (text_of() + "\n" + text_of({"token": '"other-0123456789abcdef"'}), "the same name"),
        (text_of() + "\n" + text_of({"name": '"other"'}), "the same token"),
    ],
)
def test_a_file_that_says_something_unclear_is_refused_without_showing_a_token(
    tmp_path: Path, text: str, reason: str
) -> None:
    from storage_lib.serve.access.client_file import parse_clients

    with pytest.raises(InvalidInputError, match=reason) as refused:
        parse_clients(text, tmp_path / "clients.toml")

    assert "0123456789" not in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    from storage_lib.serve.access.client_file import ClientFile

    path = client_file(tmp_path)
    path.chmod(0o640)

    with pytest.raises(InvalidInputError, match=r"chmod 600"):
        ClientFile(path)


def test_a_changed_file_counts_at_once_and_an_invalid_one_lets_nobody_in(tmp_path: Path) -> None:
    from storage_lib.serve.access.client_file import ClientFile
    from storage_lib.serve.access.refusal import Refusal, RefusedRequestError

    path = client_file(tmp_path)
    clients = ClientFile(path)
    assert [each.client.name for each in clients.credentials()] == ["reports", "loader", "past"]

    replaced(path, text_of())
    assert [each.client.name for each in clients.credentials()] == ["reports"]

    replaced(path, "[[client")
    for _ in range(2):
        with pytest.raises(RefusedRequestError) as refused:
            clients.credentials()
        assert refused.value.refusal is Refusal.UNAVAILABLE

    path.unlink()
    with pytest.raises(RefusedRequestError):
        clients.credentials()

    replaced(path, CLIENTS)
    assert len(clients.credentials()) == len(TOKENS)


def replaced(path: Path, text: str) -> None:
    """Write a new file in place of the old one, as editors do: its inode tells them apart within one tick."""
    directory = path.parent / "new"
    directory.mkdir(exist_ok=True)
    os.replace(client_file(directory, text), path)  # noqa: PTH105  names the act
