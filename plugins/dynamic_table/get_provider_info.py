"""What Airflow learns of this package where it is installed, rather than found in a plugins folder.

The connection type with its form comes only this way. An invalid answer would keep every process of Airflow from
starting, so a test holds it against Airflow's own schema.
"""

from __future__ import annotations

from typing import Any

__all__ = ["get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """Return it."""
    return {
        "package-name": "spark-dynamic-tables",
        "name": "Dynamic tables",
        "description": "Tables with a log in Kafka and files in the Paimon format, written by Spark, run from Airflow.",
        "connection-types": [
            {
                "connection-type": "dynamic_table",
                "hook-class-name": "dynamic_table.hook.DynamicTableHook",
                "hook-name": "Dynamic tables",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "port", "schema"],
                    "relabeling": {"login": "Kafka user", "password": "Kafka password"},
                    "placeholders": {},
                },
                "conn-fields": {
                    "warehouse": {
                        "label": "Warehouse",
                        "description": "Below which the tables live: /path, s3://bucket/path or hdfs://host/path.",
                        "schema": {"type": "string"},
                    },
                    "bootstrap_servers": {
                        "label": "Kafka servers",
                        "description": "host:port of some brokers, with commas between; empty: tables without a log.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "security_protocol": {
                        "label": "Kafka security",
                        "description": "How brokers are spoken to; empty: PLAINTEXT.",
                        "schema": {
                            "type": ["string", "null"],
                            "enum": [None, "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
                        },
                    },
                    "sasl_mechanism": {
                        "label": "Kafka SASL mechanism",
                        "description": "How user and password are told; PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, ...",
                        "schema": {"type": ["string", "null"]},
                    },
                    "catalog": {
                        "label": "Catalog",
                        "description": "sql, hive, or one that a package adds; empty: the warehouse's own directories.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "catalog_uri": {
                        "label": "Address of the catalog",
                        "description": "postgresql://user@host/db, sqlite:////path, thrift://host:9083.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "spark_master": {
                        "label": "Spark master",
                        "description": "spark://host:7077, local[2], ...; empty: what Spark is configured with.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "options": {
                        "label": "Options",
                        "description": "Defaults of new tables, and what Kafka, a schema registry and the store need. "
                        "No secrets: everybody who may look at connections sees these.",
                        "schema": {"type": ["object", "null"]},
                    },
                    "secret_options": {
                        "label": "Secret options",
                        "description": 'Options that Airflow never shows again, as JSON: {"s3.secret-key": "..."}.',
                        "schema": {"type": ["string", "null"], "format": "password"},
                    },
                    "jobs_directory": {
                        "label": "Directory of sinks",
                        "description": "Where streaming sinks keep their checkpoints; empty: in Airflow's home.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "publish_pages": {
                        "label": "Publish on the pages",
                        "description": "Everybody who may see Airflow's assets sees this connection's tables.",
                        "schema": {"type": ["boolean", "null"], "default": False},
                    },
                    "docs_directory": {
                        "label": "Directory of Data Docs",
                        "description": "Where validations keep their results and pages; empty: in Airflow's home.",
                        "schema": {"type": ["string", "null"]},
                    },
                },
            }
        ],
        "config": {
            "dynamic_table": {
                "description": "Dynamic tables.",
                "options": {
                    "allowed_hosts": {
                        "description": (
                            "Host names, separated by commas, by which requests may call the API server. Empty: its "
                            "own and loopback's where [api] base_url is on loopback, else any."
                        ),
                        "version_added": None,
                        "type": "string",
                        "example": "airflow.example.com,localhost",
                        "default": "",
                    },
                    "on_failure": {
                        "description": "package.module:function, called with the context of a task that has failed.",
                        "version_added": None,
                        "type": "string",
                        "example": "on_call:page_somebody",
                        "default": "",
                    },
                    "deferral_seconds_min": {
                        "description": "How long a deferred task stays deferred at least. A task that resumes before "
                        "the scheduler has processed the end of its process is failed by Airflow; increase it where "
                        "the scheduler's loop takes longer.",
                        "version_added": None,
                        "type": "float",
                        "example": None,
                        "default": "5",
                    },
                    "callable_modules": {
                        "description": "Modules whose functions forms and templates may name: package.module, "
                        "package.module:function, or dags-folder for every module below the DAGs folder.",
                        "version_added": None,
                        "type": "string",
                        "example": "dags-folder, company.sources",
                        "default": "dags-folder",
                    },
                    "spark_masters": {
                        "description": "Spark masters that forms and templates may name, besides the connection's; "
                        "local stands for local, local[2], local[*].",
                        "version_added": None,
                        "type": "string",
                        "example": "local, spark://host:7077",
                        "default": "local",
                    },
                    "spark_conf_keys": {
                        "description": "Settings of Spark that forms and templates may give, besides numbers, sizes "
                        "and switches that cannot run code; one that ends with * is a prefix.",
                        "version_added": None,
                        "type": "string",
                        "example": "spark.sql.streaming.*",
                        "default": "",
                    },
                    "spark_bytes_min": {
                        "description": "From how many bytes on the engine auto is a Spark job.",
                        "version_added": None,
                        "type": "integer",
                        "example": None,
                        "default": "2147483648",
                    },
                },
            }
        },
    }
