"""The compose file: what can be told of it without starting it."""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import check_jsonschema
import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from local_airflow import COMPONENTS
from local_kafka import SETTINGS

CHECKOUT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
RUN_TO_THEIR_END = {"airflow-init"}
KEYS = {
    "build",
    "command",
    "depends_on",
    "environment",
    "healthcheck",
    "image",
    "pid",
    "ports",
    "restart",
    "volumes",
}


def test_the_file_is_as_the_compose_specification_wants_it() -> None:
    """By the schema that check-jsonschema ships."""
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
        assert service["image"] == "dynamic-tables" or re.search(r":\d", service["image"])
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
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version[1]}"
    settings = SERVICES["kafka"]["environment"]
    for key in ("transaction.max.timeout.ms", "auto.create.topics.enable", "transaction.state.log.min.isr"):
        assert settings["KAFKA_" + key.upper().replace(".", "_")] == SETTINGS[key]


def test_the_connection_is_one_that_the_hook_understands() -> None:
    for name, service in SERVICES.items():
        if name.startswith("airflow-"):
            connection = json.loads(service["environment"]["AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT"])
            assert connection["conn_type"] == "dynamic_table"
            assert set(connection["extra"]) == {"warehouse", "bootstrap_servers", "jobs_directory"}


def test_the_image_copies_what_exists() -> None:
    dockerfile = (CHECKOUT / "docker" / "Dockerfile").read_text()
    admitted = set(re.findall(r"^!(\S+)$", (CHECKOUT / "docker" / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    copied = [source for line in re.findall(r"^COPY (.+)$", dockerfile, re.MULTILINE) for source in line.split()[:-1]]
    assert {source.split("/")[0] for source in copied} == admitted
    assert [source for source in copied if not (CHECKOUT / source).exists()] == []
