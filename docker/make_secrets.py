"""Create the passwords and keys of the compose stack as files in ``docker/secrets``; existing files are kept.

    python3 docker/make_secrets.py

The folder is accessible to you only; each container gets the files that it needs below ``/run/secrets``. A trailing
newline in a file, as editors write it, is not part of the secret. Standard library only.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from urllib.parse import quote

__all__ = ["make_secrets"]

SECRETS = Path(__file__).resolve().parent / "secrets"


def make_secrets(folder: Path) -> list[Path]:
    """Create the missing files and return them."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)  # one that somebody else has made
    made: list[Path] = []

    def secret(name: str, content: str) -> str:
        path = folder / name
        if not path.exists():
            # Written atomically: an incomplete file would be kept by the next run.
            new = folder / f"{name}.new"
            new.write_text(content, encoding="utf-8")
            new.replace(path)
            made.append(path)
        # Shown to a container it belongs to who made it, and the container's user is another.
        path.chmod(0o644)
        return path.read_bytes().decode().rstrip("\n")

    password = secret("postgres_password", secrets.token_urlsafe(24))
    secret("airflow_database", f"postgresql+psycopg2://airflow:{quote(password, safe='')}@postgres/airflow")
    # The secret of all drivers, workers and executors of the cluster, as Spark properties.
    secret(
        "spark-defaults.conf",
        f"spark.authenticate true\nspark.authenticate.secret {secrets.token_hex(32)}\n"
        "spark.network.crypto.enabled true\n",
    )
    keys = {
        "s3.access-key": secret("s3_access_key", secrets.token_hex(10)),
        "s3.secret-key": secret("s3_secret_key", secrets.token_urlsafe(30)),
    }
    store = {"s3.endpoint": "http://s3:7070", "s3.region": "us-east-1"}
    extra = {
        "warehouse": "s3://lake/warehouse",
        "bootstrap_servers": "kafka:9092",
        "jobs_directory": "/data/jobs",
        "docs_directory": "/data/docs",
        "publish_pages": True,
        "options": store,
        "secret_options": keys,
    }
    # Airflow's users: one for people, one for tasks that call its API.
    logins = json.loads(
        secret("airflow_passwords.json", json.dumps({user: secrets.token_urlsafe(16) for user in ("admin", "tasks")}))
    )
    connections = {
        "dynamic_table_default": {"conn_type": "dynamic_table", "extra": extra},
        "airflow_api": {
            "conn_type": "http",
            "host": "airflow-api-server",
            "port": 8080,
            "login": "tasks",
            "password": logins["tasks"],
        },
    }
    secret("airflow_connections.json", json.dumps(connections, indent=1))
    return made


def main() -> None:
    """Create the files and print their names."""
    for path in make_secrets(SECRETS):
        print(path)


if __name__ == "__main__":
    main()
