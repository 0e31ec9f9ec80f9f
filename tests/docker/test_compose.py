"""Static checks of the compose file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from errno import ENOSPC
from importlib.resources import files
from pathlib import Path
from typing import Any

import check_jsonschema
import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from sqlalchemy.engine import make_url

from docker.make_secrets import make_secrets
from docker.pin_images import pin, versions
from local_airflow import COMPONENTS
from local_kafka import SETTINGS
from stack_setup import S3_SERVER

CHECKOUT = Path(__file__).parents[2]
DOCKER = CHECKOUT / "docker"
OF_SPARK = {"spark-master", "spark-worker", "airflow-scheduler"}
COMPOSE: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
RUN_TO_THEIR_END = {"airflow-init", "s3-init"}
KEYS = {
    "build",
    "cap_add",
    "cap_drop",
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "network_mode",
    "pid",
    "ports",
    "restart",
    "secrets",
    "security_opt",
    "user",
    "volumes",
}


def test_the_file_is_as_the_compose_specification_wants_it() -> None:
    """Validated by the schema that check-jsonschema ships."""
    schema = files(check_jsonschema) / "builtin_schemas" / "vendor" / "compose-spec.json"

    jsonschema.validate(COMPOSE, json.loads(schema.read_text()))


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_well_formed_and_tells_its_health(name: str) -> None:
    service = SERVICES[name]
    assert set(service) <= KEYS
    assert ("healthcheck" in service) is (name not in RUN_TO_THEIR_END)
    assert all(isinstance(word, str) for word in service.get("command", []))
    assert all(isinstance(value, str) for value in service.get("environment", {}).values())


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_services_that_exist_and_can_become_what_it_waits_for(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[needed]
        elif how["condition"] == "service_completed_successfully":
            assert needed in RUN_TO_THEIR_END
        else:
            assert how["condition"] == "service_started"
            assert needed in SERVICES


def test_ports_are_published_on_loopback_only_and_once() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)
    assert len(published) == len({port.split(":")[1] for port in published})


def test_every_volume_that_is_used_is_declared_and_every_other_way_round() -> None:
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_every_image_names_its_version_unless_it_is_ours() -> None:
    for service in SERVICES.values():
        assert service["image"] == "dynamic-tables" or re.search(r":v?\d", service["image"])
        assert ("build" in service) is (service["image"] == "dynamic-tables")


def test_the_components_are_those_of_the_local_airflow() -> None:
    commands = {tuple(service["command"][1:]) for name, service in SERVICES.items() if name.startswith("airflow-")}
    assert {command[0] for command in commands} == {arguments[0] for arguments in COMPONENTS.values()} | {"db"}


@pytest.mark.airflow
def test_every_command_and_health_check_of_airflow_is_one_that_this_airflow_knows() -> None:
    from airflow.cli.cli_parser import get_parser

    airflow = [service for name, service in SERVICES.items() if name.startswith("airflow-")]
    commands = [service["command"] for service in airflow]
    commands += [test[1:] for service in airflow if (test := service.get("healthcheck", {}).get("test", ()))]
    asked = [command[1:] for command in commands if command[0] == "airflow"]

    assert len(asked) == 8
    for arguments in asked:
        get_parser().parse_args(arguments)


def test_the_programs_that_the_image_runs_are_in_its_lock() -> None:
    programs = {service["command"][0] for service in SERVICES.values() if service["image"] == "dynamic-tables"}

    assert programs == {"airflow", "spark-class"}
    assert [name for name in programs if not (Path(sys.executable).parent / name).exists()] == []


def test_the_broker_is_that_of_the_local_stack() -> None:
    version = re.search(r'name="kafka_2.13" rev="([\d.]+)"', (CHECKOUT / "docker/local/kafka_ivy.xml").read_text())
    assert version is not None
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version[1]}${{KAFKA_DIGEST-}}"
    settings = SERVICES["kafka"]["environment"]
    for key in ("transaction.max.timeout.ms", "auto.create.topics.enable", "transaction.state.log.min.isr"):
        assert settings["KAFKA_" + key.upper().replace(".", "_")] == SETTINGS[key]


def test_the_store_is_that_of_the_local_stack() -> None:
    assert SERVICES["s3"]["image"].split(":")[1].partition("$")[0] == S3_SERVER.split("@")[1]


def test_a_secret_is_a_file_that_is_made_and_shown_to_who_needs_it_alone(tmp_path: Path) -> None:
    made = {path.name for path in make_secrets(tmp_path / "secrets")}

    assert {each["file"] for each in COMPOSE["secrets"].values()} == {f"secrets/{name}" for name in made}
    shown = {name: secrets_of(service) for name, service in SERVICES.items()}
    assert shown.pop("postgres") == {"postgres_password"}
    assert shown.pop("s3") == {"s3_access_key", "s3_secret_key"}
    for name, secrets in shown.items():
        of_airflow = {"airflow_database", "airflow_connections.json"}
        if name == "airflow-api-server":
            of_airflow.add("airflow_passwords.json")
        of_spark = {"spark-defaults.conf"} if name in OF_SPARK else set()
        assert secrets == (of_airflow if name.startswith("airflow-") else set()) | of_spark, name
    # Files named in a command or a variable are secrets of the service.
    for name, service in SERVICES.items():
        spelled = set(re.findall(r"/run/secrets/([\w.]+)", json.dumps(service)))
        # Spark receives the directory, and finds its file there itself.
        spelled |= {"spark-defaults.conf"} if "SPARK_CONF_DIR" in service.get("environment", {}) else set()
        assert spelled == secrets_of(service), name
    named = r"\w+_FILE\b|postgres_password|airflow_passwords(\.json)?"
    assert "password" not in re.sub(named, "", json.dumps(SERVICES)).lower()


def test_the_api_server_gets_a_file_of_passwords_that_it_may_write_and_nobody_else_reads(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    variable = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
    copy = tmp_path / "passwords.json"
    service = SERVICES["airflow-api-server"]
    shell, _, script, name = [word.replace("$$", "$") for word in service["entrypoint"]]
    script = script.replace("/run/secrets", str(tmp_path / "secrets"))

    said = subprocess.check_output(
        [shell, "-c", script, name, "echo", "a b", "c"], env={**os.environ, variable: str(copy)}
    )

    assert said == b"a b c\n"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert json.loads(copy.read_text()).keys() == {"admin", "tasks"}
    users = [
        user.split(":")[0] for user in service["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(",")
    ]
    assert set(users) == {"admin", "tasks"}


def test_secrets_that_are_there_stay_and_the_others_fit_them(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    make_secrets(folder)
    (folder / "airflow_database").unlink()
    (folder / "s3_access_key").write_text("of mine")
    (folder / "airflow_connections.json").unlink()
    before = {path.name: path.read_text() for path in folder.iterdir()}

    again = make_secrets(folder)

    assert {path.name for path in again} == {"airflow_database", "airflow_connections.json"}
    assert {name: (folder / name).read_text() for name in before} == before
    assert f":{before['postgres_password']}@postgres/" in (folder / "airflow_database").read_text()
    connection = json.loads((folder / "airflow_connections.json").read_text())["dynamic_table_default"]
    assert connection["extra"]["secret_options"]["s3.access-key"] == "of mine"
    assert (folder.stat().st_mode & 0o777, make_secrets(folder)) == (0o700, [])


def test_a_secret_that_somebody_wrote_with_an_editor_is_the_same_to_all_who_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o755)
    for name in ("postgres_password", "s3_access_key", "s3_secret_key"):
        (folder / name).write_text("p@ss/w%rd: #?'\"$ö\n", encoding="utf-8")
        (folder / name).chmod(0o600)

    make_secrets(folder)

    [shown] = {
        # As the images of PostgreSQL and of the store read their secrets.
        subprocess.check_output(["sh", "-c", f'printf %s "$(cat {folder}/{name})"'], encoding="utf-8")
        for name in ("postgres_password", "s3_access_key", "s3_secret_key")
    }
    assert make_url((folder / "airflow_database").read_text()).password == shown
    connection = json.loads((folder / "airflow_connections.json").read_text())["dynamic_table_default"]
    options = connection["extra"]["secret_options"]
    assert (options["s3.access-key"], options["s3.secret-key"]) == (shown, shown)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


def test_a_secret_that_was_being_made_when_the_disk_was_full_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text = Path.write_text

    def half(path: Path, content: str, **how: Any) -> int:
        write_text(path, content[: len(content) // 2], **how)
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="No space left"):
        make_secrets(tmp_path / "secrets")
    monkeypatch.setattr(Path, "write_text", write_text)

    assert len(make_secrets(tmp_path / "secrets")) == len(COMPOSE["secrets"])


def secrets_of(service: dict[str, Any]) -> set[str]:
    return {each if isinstance(each, str) else each["target"] for each in service.get("secrets", [])}


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_can_gain_no_right_and_does_not_run_as_root(name: str) -> None:
    service = SERVICES[name]

    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    # One service changes the owner of a new volume to the store's user, and ends; it has no network.
    is_owner = name == "s3-init"
    assert service.get("cap_add", []) == (["CHOWN", "DAC_OVERRIDE"] if is_owner else [])
    assert (service["user"] in ("root", "0", "0:0")) is is_owner
    assert (service.get("network_mode") == "none") is is_owner


def test_every_image_of_others_has_a_place_for_its_digest() -> None:
    kept = dict(line.split("=", 1) for line in (DOCKER / ".env").read_text().splitlines() if not line.startswith("#"))
    foreign = {service["image"] for service in SERVICES.values()} - {"dynamic-tables"}

    assert kept.keys() == versions().keys()
    assert foreign | {"python:3.12-slim-bookworm${PYTHON_DIGEST-}"} == {
        f"{image}${{{variable}-}}" for variable, image in versions().items()
    }
    assert SERVICES["spark-master"]["build"]["args"] == {"PYTHON_DIGEST": "${PYTHON_DIGEST-}"}
    assert all(re.fullmatch(r"(@sha256:[0-9a-f]{64})?", digest) for digest in kept.values())


def test_digests_are_what_the_registry_says_and_an_image_without_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compose.yaml", "Dockerfile", ".env"):
        (tmp_path / name).write_text((DOCKER / name).read_text())
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    monkeypatch.setenv("PATH", str(docker.parent), prepend=os.pathsep)

    docker.write_text(
        '#!/bin/sh\n[ "$4" = postgres:17 ] && { echo no such image >&2; exit 1; }\necho sha256:' + "ab" * 32
    )
    docker.chmod(0o755)
    with pytest.raises(SystemExit, match=r"postgres:17 has no digest.*no such image"):
        pin(tmp_path)
    assert (tmp_path / ".env").read_text() == (DOCKER / ".env").read_text()

    docker.write_text("#!/bin/sh\necho sha256:" + "ab" * 32)
    assert set(pin(tmp_path).values()) == {"@sha256:" + "ab" * 32}
    lines = (tmp_path / ".env").read_text().splitlines()
    assert "KAFKA_DIGEST=@sha256:" + "ab" * 32 in lines
    assert lines[0].startswith("#")


def test_forms_may_name_the_clusters_master(tmp_path: Path) -> None:
    masters = SERVICES["airflow-scheduler"]["environment"]["AIRFLOW__DYNAMIC_TABLE__SPARK_MASTERS"]

    assert masters == f"local, {SERVICES['spark-worker']['command'][-1]}"


def test_the_image_copies_what_exists() -> None:
    dockerfile = (CHECKOUT / "docker" / "Dockerfile").read_text()
    admitted = set(re.findall(r"^!(\S+)$", (CHECKOUT / "docker" / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    copied = [source for line in re.findall(r"^COPY (.+)$", dockerfile, re.MULTILINE) for source in line.split()[:-1]]
    assert {source.split("/")[0] for source in copied} == admitted
    assert [source for source in copied if not (CHECKOUT / source).exists()] == []
