"""The local Airflow's users have passwords, which other users of the machine cannot read."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from airflow_users import ROLES, closed_folder, passwords
from local_airflow import LocalAirflow


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_passwords_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "passwords.json"
    made = passwords(path)

    assert made.keys() == ROLES.keys()
    assert len({*made.values()}) == len(ROLES)
    assert min(len(password) for password in made.values()) >= 20
    assert mode(path) == 0o600
    assert passwords(path) == made
    assert [each.name for each in tmp_path.iterdir()] == ["passwords.json"]


def test_a_password_of_ones_own_stays_and_a_crash_while_writing_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "passwords.json"
    path.write_text(json.dumps({"admin": "sesame"}))
    (tmp_path / "passwords.json.new").write_text("{")

    made = passwords(path)

    assert made["admin"] == "sesame"
    assert json.loads(path.read_text()) == made
    assert mode(path) == 0o600


def test_airflows_folder_is_closed_to_other_users(tmp_path: Path) -> None:
    open_one = tmp_path / "open"
    open_one.mkdir(mode=0o755)
    for folder in (open_one, tmp_path / "a" / "b"):
        closed_folder(folder)
        assert mode(folder) == 0o700


def test_nobody_is_admin_without_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    settings = LocalAirflow(home=tmp_path)._environment(8080)

    assert settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
    assert settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] == "admin:ADMIN,tasks:OP"
    kept = json.loads(Path(settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).read_text())
    assert json.loads(settings["AIRFLOW_CONN_AIRFLOW_API"])["password"] == kept["tasks"]
