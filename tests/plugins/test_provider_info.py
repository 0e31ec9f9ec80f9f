"""The installed package is a provider: Airflow accepts its metadata and knows the connection's form."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import airflow
import jsonschema  # type: ignore[import-untyped]
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

from dynamic_table.airflow_plugin import DynamicTablePlugin
from dynamic_table.get_provider_info import get_provider_info
from dynamic_table.versions.airflow_feature import AirflowFeature
from storage_lib.distribution import DISTRIBUTION
from tests.support.airflow_names import needs


def test_what_airflow_is_told_is_what_it_accepts() -> None:
    """Invalid metadata would keep every Airflow process from starting."""
    schema = Path(airflow.__file__).with_name("provider_info.schema.json")

    jsonschema.validate(get_provider_info(), json.loads(schema.read_text()))
    assert get_provider_info()["package-name"] == DISTRIBUTION


def test_the_installed_package_says_so_to_airflow() -> None:
    found = entry_points(group="apache_airflow_provider")
    [entry] = [each for each in found if each.module.startswith("dynamic_table")]

    assert entry.load() is get_provider_info


@needs(AirflowFeature.CONNECTION_FORMS)
def test_the_connection_has_a_form_in_airflow() -> None:
    [form] = [each for each in HookMetaService.hook_meta_data() if each.connection_type == "dynamic_table"]

    assert form.hook_name == "Dynamic tables"
    assert set(form.extra_fields or ()) == {
        "warehouse",
        "bootstrap_servers",
        "security_protocol",
        "sasl_mechanism",
        "catalog",
        "catalog_uri",
        "spark_master",
        "options",
        "secret_options",
        "jobs_directory",
        "docs_directory",
        "publish_pages",
    }
    assert form.standard_fields is not None
    assert form.standard_fields.password is not None
    assert form.standard_fields.password.title == "Kafka password"


def test_the_installed_package_brings_the_plugin() -> None:
    found = entry_points(group="airflow.plugins")
    [entry] = [each for each in found if each.module.startswith("dynamic_table")]

    assert entry.load() is DynamicTablePlugin
