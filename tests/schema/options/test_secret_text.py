"""Secrets in URLs, connection strings and keys are removed from displayed texts; other text is kept."""

from __future__ import annotations

import json
import re
import string
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage_lib.catalog.declaration.frozen_options import frozen_options
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.option_changes import changed_options
from storage_lib.schema.options.secret_text import MASK, holds_secret, secret_text_pattern, secrets_in, without_password
from storage_lib.schema.options.table_options import is_secret, is_secret_option, masked, secret_pattern

WORD = string.ascii_letters + string.digits
# Long enough not to occur in a name or a host by chance, and marked so that a partial leak is found as well.
MARKS = ("Zq7", "xK9")


def secrets(alphabet: str) -> st.SearchStrategy[str]:
    """Generate text of these characters with a mark at both ends: either mark in the output is a leak."""
    return st.text(alphabet, min_size=1, max_size=24).map(lambda middle: f"{MARKS[0]}{middle}{MARKS[1]}")


def leaks(text: str) -> bool:
    return any(mark in without_password(text) for mark in MARKS)


# As users paste them, without escaping. In a separate text a URL's password may even contain blanks.
IN_A_URL = WORD + "@:/?#&=%;,+$!*()'\"[]{}<>|\\^~`-_."
URLS = (
    "postgresql://ann:{}@db:5432/tables",
    "postgresql+psycopg://ann@tenant:{}@db/tables?connect_timeout=5",
    "thrift://:{}@metastore:9083",
    "redis://:{}@cache/0",
    "http://ann.b-c:{}@[::1]:8080/subjects",
    "jdbc:postgresql://ann:{}@db/tables",
    "//ann:{}@db:5432/tables",
)
IN_A_QUERY = WORD + "@:/?#%+$!*(<>|\\^~`-_.[{"
QUERIES = (
    "jdbc:postgresql://db/tables?user=ann&password={}&ssl=true",
    "https://account.blob.core.windows.net/lake?sv=2024-01-01&sp=r&sig={}&se=2030",
    "https://bucket.s3.amazonaws.com/x?X-Amz-Signature={}&X-Amz-Date=1",
    "https://bucket.s3.amazonaws.com/x?X-Amz-Security-Token={}",
    "https://registry/subjects?access_token={}",
    "https://host/x?api_key={}&part=1",
    "jdbc:sqlserver://db;databaseName=t;user=ann;password={};encrypt=true",
    "Driver=x;Server=db;UID=ann;PWD={};Encrypt=yes",
    "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey={};EndpointSuffix=core.windows.net",
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={}",
    "BlobEndpoint=https://lake;SharedAccessSignature={}",
    "host=db user=ann password={} dbname=tables",
    "sasl.password={}",
    "basic.auth.user.info={}",
)
QUOTED = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="{}";',
    "org.apache.kafka.common.security.scram.ScramLoginModule required username='ann' password='{}';",
    'oauth.client.id="me" oauth.client.secret="{}" ;',
    "host=db password = '{}' dbname=tables",
    '{{"user": "ann", "password": "{}", "x": 1}}',
    "{{'s3.secret-key': '{}'}}",
    '{{"sasl.jaas.config": "x", "sas-token": "{}"}}',
)


@given(st.sampled_from(URLS), secrets(IN_A_URL), st.sampled_from(("", "cannot reach ", "(sqlalchemy.Error) url=")))
@example(URLS[0], "Zq7p@ss@xK9", "")
@example(URLS[0], "Zq71234/xK9", "error: ")
def test_a_urls_password_is_hidden_whatever_it_holds(form: str, secret: str, before: str) -> None:
    text = before + form.format(secret)

    assert not leaks(text), without_password(text)
    assert holds_secret(text)
    assert any(secret in found for found in secrets_in(text))


@given(st.sampled_from(URLS), secrets(IN_A_URL + " \t"))
def test_alone_a_urls_password_may_hold_blanks(form: str, secret: str) -> None:
    assert not leaks(form.format(secret))


@given(st.sampled_from(QUERIES), secrets(IN_A_QUERY))
def test_a_named_secret_of_a_query_or_a_connection_string_is_hidden(form: str, secret: str) -> None:
    assert not leaks(form.format(secret)), without_password(form.format(secret))
    assert holds_secret(form.format(secret))


@given(st.sampled_from(QUOTED), secrets(WORD + " @:/?#&=%;,+$!*()[]{}<>|^~`-_.\n"))
def test_a_quoted_secret_is_hidden_to_its_closing_quote(form: str, secret: str) -> None:
    assert not leaks(form.format(secret)), without_password(form.format(secret))


@given(st.sampled_from(URLS + QUERIES), secrets(WORD + string.punctuation))
def test_an_escaped_secret_is_hidden_and_found_as_it_is_meant(form: str, secret: str) -> None:
    text = form.format(quote(secret, safe=""))

    assert not leaks(text)
    assert secret in secrets_in(text)


YAML = (
    "password: {}",
    "user: ann\n  sasl.password: {}\nport: 1",
    "- db_pwd: {}",
    "{{user: ann, clientSecret: {}}}",
    "token: '{}'",
    "options:\r\n  access-key: {}",
    "'user: ann\\nsecret: {}'",
)


@given(st.sampled_from(YAML), secrets(WORD + " @:/?#&=%;,+$!*()[]{}<>|^~`-_."))
def test_a_named_secret_of_yaml_is_hidden_to_the_end_of_its_line(form: str, secret: str) -> None:
    text = form.format(secret)

    assert not leaks(text), without_password(text)
    assert holds_secret(text)
    assert re.search(secret_text_pattern(), text)


def test_a_block_of_yaml_is_hidden_with_what_follows() -> None:
    assert without_password("user: ann\npassword: |\n  Zq7\n  xK9\n") == f"user: ann\npassword: {MASK}"


@given(st.text(WORD + "+/=\n", min_size=20))
def test_a_private_key_is_hidden(body: str) -> None:
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{MARKS[0]}{body}{MARKS[1]}\n-----END RSA PRIVATE KEY-----\n"

    assert not leaks(text)
    assert not leaks(text[: text.index(MARKS[1]) + 3])


@pytest.mark.parametrize(
    "text",
    [
        "authorization: Bearer Zq7abcdefghxK9",
        "Authorization: Basic Zq7abcdefghxK9==",
        "jdbc:oracle:thin:scott/Zq7tiger@xK9@//db:1521/x",
        "token eyJhbGciOiJI.eyJZq7xK9.sigZq7",
        "Bearer Zq7xK9",
        "bad credentials: ghp_Zq7abcdefghijklmnopqrstuvwxK9",
        "glpat-Zq7-cdefghijklmxK9",
    ],
)
def test_other_spellings_are_hidden(text: str) -> None:
    assert not leaks(text)


@given(st.text(max_size=200))
def test_what_was_hidden_once_stays_as_it_is(text: str) -> None:
    once = without_password(text)

    assert without_password(once) == once or MASK in once


@pytest.mark.parametrize(
    "text",
    [
        "s3://lake/warehouse",
        "thrift://metastore:9083,thrift://other:9083",
        "postgresql://ann@db:5432/tables",
        "http://127.0.0.1:8080/a/b",
        "kafka:9092,other:9092",
        "primary-key=id,day",
        "fields.n.sequence-group=a,b",
        "unexpected token: SELECT at line 1",
        "id: int64 not null\ntoken: string\nsecret: decimal128(9, 2)\npassword: timestamp[us, tz=UTC]",
        "passed: 3\nsignal: 9\nmax_tokens: 5",
        "the bearer of this",
        "a comment // with: a colon",
        "the password is wrong",
        "monkey=1;keyboard=2",
        "/etc/kafka/client.keystore.jks",
        "a@b.example",
    ],
)
def test_what_holds_no_secret_is_shown(text: str) -> None:
    assert without_password(text) == text
    assert secrets_in(text) == []


def test_what_is_around_a_secret_stays() -> None:
    assert without_password("postgresql://ann:p@ss@db:5432/t") == f"postgresql://ann:{MASK}@db:5432/t"
    assert without_password("https://x?sv=1&sig=abc&se=2") == f"https://x?sv=1&sig={MASK}&se=2"
    assert without_password('required username="ann" password="a b";') == f'required username="ann" password={MASK};'


@pytest.mark.parametrize(
    "key",
    [
        "log.kafka.ssl.password",
        "log.kafka.ssl.keystore.key",
        "ssl.key.pem",
        "basic.auth.user.info",
        "fs.azure.account.key.lake",
        "connection-string",
        "s3.session-token",
        "private_key",
        "ssl.key.passphrase",
        "pwd",
        "jdbc.pass",
        "rest.signing-key",
    ],
)
def test_a_secret_is_known_by_its_name_here_and_in_spark(key: str) -> None:
    assert is_secret(key)
    assert re.search(secret_pattern(), key)


@pytest.mark.parametrize("value", ["postgresql://ann:p@ss@db/t", "https://x/y?sig=abc", "AccountKey=abc=="])
def test_a_table_keeps_no_option_that_holds_a_secret(value: str) -> None:
    with pytest.raises(InvalidInputError, match="is a secret, or holds one") as of_creation:
        frozen_options(TableName("db", "t"), {"user.note": value}, {}, has_primary_key=True)
    with pytest.raises(InvalidInputError, match="is a secret, or holds one") as of_change:
        changed_options({}, "user.note", value)
    assert value not in f"{of_creation.value} {of_change.value}"
    assert frozen_options(TableName("db", "t"), {}, {"user.note": value}, has_primary_key=True).get("user.note") is None


def test_an_option_is_judged_by_its_value_as_well() -> None:
    options = {"uri": "postgresql://ann:p@ss@db/t", "endpoint": "Endpoint=sb://x/;SharedAccessKey=abc", "bucket": "3"}

    assert [key for key, value in options.items() if is_secret_option(key, value)] == ["uri", "endpoint"]
    assert masked(options) == {
        "uri": f"postgresql://ann:{MASK}@db/t",
        "endpoint": f"Endpoint=sb://x/;SharedAccessKey={MASK}",
        "bucket": "3",
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit",
    [
        *("1", "a", "a.", "://a:", "password", '"', "=", "password='", "-----BEGIN PRIVATE KEY-----", "eyJ"),
        *("eyJ-", "//:", "-", "jdbc:oracle:a:/", "jdbc:oracle:a:"),
    ],
)
def test_a_long_text_is_searched_in_time_that_grows_with_it(unit: str) -> None:
    without_password(unit * (50_000 // len(unit)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_secret_of_json_within_json_is_hidden(depth: int) -> None:
    text = json.dumps({"user": "ann", "password": "sesame", "port": 1})
    for _ in range(depth):
        text = json.dumps({"options": text})

    assert "sesame" not in without_password(text)
    assert "ann" in without_password(text)
    assert secrets_in(text) == ["sesame"]
    assert "sesame" not in re.sub(secret_text_pattern(), "", text)
