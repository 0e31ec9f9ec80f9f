"""A version of kafka-python that does not fit is refused by its number, before anything is written."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("kafka")

import kafka
from kafka.net.manager import KafkaConnectionManager

from storage_lib.log_store.kafka.kafka_connections import BEYOND, NEWEST_SEEN, OLDEST, refuse_unfitting_client

CHECKOUT = Path(__file__).resolve().parents[3]
OF_AN_OLD_CLIENT = """\
import sys
import kafka, pyarrow as pa
kafka.__version__ = "3.0.7"
from storage_lib import InvalidInputError, open_catalog
catalog = open_catalog(sys.argv[1], {"log.system": "kafka", "log.kafka.bootstrap.servers": "127.0.0.1:1"})
try:
    catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
except InvalidInputError as error:
    print(error)
"""


def test_the_installed_version_fits() -> None:
    refuse_unfitting_client()


def test_the_package_admits_the_same_versions() -> None:
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    oldest, beyond = (".".join(map(str, each)) for each in (OLDEST, BEYOND))
    assert f"kafka-python>={oldest},<{beyond}" in extras["kafka"]


@pytest.mark.parametrize("release", ["3.0.8", NEWEST_SEEN, "3.0.99", "3.0.12.post1"])
def test_patches_fit(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "__version__", release)

    refuse_unfitting_client()


@pytest.mark.parametrize("release", ["2.3.3", "3.0.7", "3.1.0", "3.1.0.dev1", "4.0", "unknown"])
def test_another_version_is_refused_by_its_number(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "__version__", release)

    with pytest.raises(ImportError, match=rf"kafka-python {release} does not fit.*pip install 'kafka-python>=3.0.8,<"):
        refuse_unfitting_client()


@pytest.mark.parametrize("found", [lambda self, broker: (self, broker), None])
def test_a_changed_method_is_refused_by_its_name(found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaConnectionManager, "_build_transport", found)

    with pytest.raises(
        ImportError, match=rf"has changed KafkaConnectionManager\._build_transport.*pip install .*=={NEWEST_SEEN}"
    ):
        refuse_unfitting_client()


def test_a_table_with_a_log_is_not_created_with_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OF_AN_OLD_CLIENT, str(tmp_path / "warehouse")]

    said = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout

    assert re.match(r"table shop\.orders, .* can't import what it needs .*kafka-python 3\.0\.7 does not fit", said)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
