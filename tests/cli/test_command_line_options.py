"""Secrets are passed to the command line by a private file or the environment, and no error prints them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from storage_lib.cli import app as command_line
from storage_lib.cli.command_line_options import options_of_environment, options_of_file, parsed_options, parsed_pairs
from storage_lib.cli.context import Settings
from storage_lib.errors import InvalidInputError

SECRET = {"log.kafka.sasl.plain.password": "sesame=1 #x", "uri": "postgresql://ann:sesame@2@db/t"}


def private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_holds_lines_or_json(tmp_path: Path) -> None:
    lines = "# of the broker\n\n" + "".join(f" {key} = {value}\n" for key, value in SECRET.items())

    assert options_of_file(private(tmp_path / "lines", lines)) == SECRET
    assert options_of_file(private(tmp_path / "json", json.dumps({**SECRET, "bucket": 3, "on": True}))) == {
        **SECRET,
        "bucket": "3",
        "on": "true",
    }


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o777])
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = private(tmp_path / "options", json.dumps(SECRET))
    path.chmod(mode)

    with pytest.raises(InvalidInputError, match=rf"mode {mode:04o}.*chmod 600") as refused:
        options_of_file(path)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("text", ['{"password": "sesame"', '{"password": ["sesame"]}', "sesame", "a=b\nsesame"])
def test_an_error_shows_nothing_of_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInputError, match="options file") as refused:
        options_of_file(private(tmp_path / "options", text))
    assert "sesame" not in f"{refused.value} {refused.value.__cause__}"


def test_the_environment_holds_json() -> None:
    assert options_of_environment({"DYNAMIC_TABLE_OPTIONS": json.dumps(SECRET)}) == SECRET
    assert options_of_environment({}) == {}


@pytest.mark.parametrize(("key", "value"), SECRET.items())
@pytest.mark.parametrize("what", ["--option", "--spark", "--with"])
def test_a_secret_on_the_command_line_is_refused(key: str, value: str, what: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{what} {key} is a secret.*--options-file") as refused:
        parsed_options([f"{key}={value}"], what)
    assert "sesame" not in str(refused.value)


def test_a_partition_may_be_called_as_it_likes() -> None:
    assert parsed_pairs(["token=a"], "--partition") == {"token": "a"}


def test_the_command_line_wins_over_the_file_and_that_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []

    def noted(**given: Any) -> Settings:
        seen.append(Settings(**given))
        return seen[-1]

    monkeypatch.setattr(command_line, "Settings", noted)
    path = private(tmp_path / "options", json.dumps({"b": "file", "c": "file"}))
    environment = {"DYNAMIC_TABLE_OPTIONS": json.dumps({"a": "variable", "b": "variable", "c": "variable"})}

    for given in (["--options-file", str(path)], []):
        variables = environment if given else {**environment, "DYNAMIC_TABLE_OPTIONS_FILE": str(path)}
        CliRunner().invoke(command_line.app, ["-w", str(tmp_path), *given, "-o", "c=line", "tables"], env=variables)

    assert [each.options for each in seen] == [{"a": "variable", "b": "file", "c": "line"}] * 2


def test_a_secret_of_a_file_is_on_no_command_line_and_in_no_output(tmp_path: Path) -> None:
    options = {"metastore": "sql", "uri": "postgresql://ann:sesame@2@127.0.0.1:1/t", "log.system": "none"}
    path = private(tmp_path / "options", json.dumps(options))
    command = [sys.executable, "-m", "storage_lib.cli.app", "-w", str(tmp_path), "--options-file", str(path), "tables"]
    script = f"import sys; sys.argv = {command[2:]!r}; from storage_lib.cli.app import app; app()"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert ran.returncode != 0
    assert "127.0.0.1" in ran.stderr
    assert "sesame" not in ran.stdout + ran.stderr
