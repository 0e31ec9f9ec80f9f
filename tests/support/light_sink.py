"""A sink without Spark that keeps the same manners: heartbeat file, stop file, a clean end on SIGTERM.

``write_options`` of its spec make it misbehave: ``end`` ends it at once in that state with ``error``; ``silent`` makes
it live on without a heartbeat; ``deaf`` makes it ignore every wish to stop.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

BEATS_PER_SECOND = 20


def main() -> None:
    """Beat until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    spec = json.loads(parser.parse_args().spec.read_text())
    manners = spec["write_options"]
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: None if "deaf" in manners else told.set())
    beat, path = 0, Path(spec["heartbeat_path"])
    while not told.wait(1 / BEATS_PER_SECOND) and not _should_stop(spec):
        if "end" in manners:
            _beat(path, manners["end"], beat, manners.get("error"))
            sys.exit(1)
        beat += 1
        if not ("silent" in manners and beat > 1):
            _beat(path, "RUNNING", beat)
    _beat(path, "STOPPED", beat)


def _should_stop(spec: dict[str, object]) -> bool:
    return Path(str(spec["stop_path"])).exists() and "deaf" not in spec["write_options"]  # type: ignore[operator]


def _beat(path: Path, state: str, batch_id: int, error: str | None = None) -> None:
    aside = path.with_suffix(".new")
    beat = {"state": state, "pid": os.getpid(), "batch_id": batch_id, "row_count": batch_id, "error": error}
    aside.write_text(json.dumps(beat))
    aside.replace(path)


if __name__ == "__main__":
    main()
