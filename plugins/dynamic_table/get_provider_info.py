"""Provider metadata, which Airflow reads from an installed package (not from a plugins folder).

The connection type and its form are registered only this way. Invalid metadata would keep every Airflow process from
starting, so a test validates it against Airflow's schema.
"""

from __future__ import annotations

from typing import Any

__all__ = ["get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """Return the provider metadata."""
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
                        "description": "Root path of the tables: /path, s3://bucket/path or hdfs://host/path.",
                        "schema": {"type": "string"},
                    },
                    "bootstrap_servers": {
                        "label": "Kafka servers",
                        "description": "Kafka brokers as host:port, separated by commas. Empty: tables have no log.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "security_protocol": {
                        "label": "Kafka security",
                        "description": "Security protocol of the Kafka brokers. Default: PLAINTEXT.",
                        "schema": {
                            "type": ["string", "null"],
                            "enum": [None, "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
                        },
                    },
                    "sasl_mechanism": {
                        "label": "Kafka SASL mechanism",
                        "description": "SASL mechanism of Kafka's login: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, ...",
                        "schema": {"type": ["string", "null"]},
                    },
                    "catalog": {
                        "label": "Catalog",
                        "description": "Catalog: sql, hive, or one from a package. Empty: the warehouse's directories.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "catalog_uri": {
                        "label": "Address of the catalog",
                        "description": "postgresql://user@host/db, sqlite:////path, thrift://host:9083.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "spark_master": {
                        "label": "Spark master",
                        "description": "Spark master: spark://host:7077, local[2], ... Empty: Spark's configuration.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "options": {
                        "label": "Options",
                        "description": "Defaults of new tables, and options of Kafka, a schema registry and the store. "
                        "No secrets: everybody with permission to read connections sees these.",
                        "schema": {"type": ["object", "null"]},
                    },
                    "secret_options": {
                        "label": "Secret options",
                        "description": 'Secret options as JSON, never shown again: {"s3.secret-key": "..."}.',
                        "schema": {"type": ["string", "null"], "format": "password"},
                    },
                    "jobs_directory": {
                        "label": "Directory of sinks",
                        "description": "Directory of the checkpoints of streaming sinks. Default: in Airflow's home.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "publish_pages": {
                        "label": "Publish on the pages",
                        "description": "Everybody with permission to read assets sees this connection's tables.",
                        "schema": {"type": ["boolean", "null"], "default": False},
                    },
                    "docs_directory": {
                        "label": "Directory of Data Docs",
                        "description": "Directory of validation results and their pages. Default: in Airflow's home.",
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
                            "Host names, separated by commas, that requests to the API server may use. Empty: its "
                            "own and loopback's where [api] base_url is on loopback, else any."
                        ),
                        "version_added": None,
                        "type": "string",
                        "example": "airflow.example.com,localhost",
                        "default": "",
                    },
                    "on_failure": {
                        "description": "package.module:function, called with the context of a task that failed.",
                        "version_added": None,
                        "type": "string",
                        "example": "on_call:page_somebody",
                        "default": "",
                    },
                    "deferral_seconds_min": {
                        "description": "Minimum seconds that a task stays deferred. A task that resumes before "
                        "the scheduler has processed the end of its process is failed by Airflow; increase it where "
                        "the scheduler's loop takes longer.",
                        "version_added": None,
                        "type": "float",
                        "example": None,
                        "default": "5",
                    },
                    "state_directory": {
                        "description": "Before Airflow 3.3: directory of the state of tasks and watchers between "
                        "tries, the same for workers, triggerer and API server. Empty: dynamic_table_state in "
                        "Airflow's home.",
                        "version_added": None,
                        "type": "string",
                        "example": "/shared/dynamic_table_state",
                        "default": "",
                    },
                    "callable_modules": {
                        "description": "Modules whose functions forms and templates may name: package.module, "
                        "package.module:function, or dags-folder for every module below the DAGs folder.",
                        "version_added": None,
                        "type": "string",
                        "example": "dags-folder, company.sources",
                        "default": "dags-folder",
                    },
                    "servers": {
                        "description": "Servers and directories that options of forms and templates may name, besides "
                        "the connection's: broker:9092, https://registry:8081, s3://bucket/path.",
                        "version_added": None,
                        "type": "string",
                        "example": "broker.example.com:9092, https://registry.example.com",
                        "default": "",
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
                        "description": "Input size in bytes from which on the engine auto uses Spark.",
                        "version_added": None,
                        "type": "integer",
                        "example": None,
                        "default": "2147483648",
                    },
                },
            }
        },
    }
