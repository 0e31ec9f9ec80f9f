"""Print the HTTP statuses that a whole Airflow API server, as deployed, returns to a client that is not logged in.

    python -m tests.support.anonymous_requests PATH ...        prints one JSON object: path -> status

Airflow's home and plugins folder come from the environment. No server is started: requests go to the application.
"""

from __future__ import annotations

import json
import sys

from airflow.api_fastapi.app import create_app

from tests.support.asgi_client import AsgiClient


def main() -> None:
    """Print the status of each path."""
    client = AsgiClient(create_app(apps="all"))
    sys.stdout.write(json.dumps({path: client.get(path).status_code for path in sys.argv[1:]}))


if __name__ == "__main__":
    main()
