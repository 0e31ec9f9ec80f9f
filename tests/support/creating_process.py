"""One of several processes that race to create the same files, on any storage.

Reads jobs from standard input, one JSON object per line, and answers each with whether it created the file:
{"root": "s3://lake/t", "options": {...}, "name": "snapshot-1", "me": "3"}
"""

from __future__ import annotations

import json
import sys

from storage_lib.io.file_io_factory import file_io_of


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        files = file_io_of(job["root"], job["options"])
        made = files.create_if_absent(f"{job['root']}/{job['name']}", content(job["name"], job["me"]))
        print(json.dumps(made), flush=True)


def content(name: str, me: str) -> bytes:
    """Return the bytes that process ``me`` writes; large enough not to be sent in one piece."""
    return f"{name} by {me} ".encode() * 2000


if __name__ == "__main__":
    main()
