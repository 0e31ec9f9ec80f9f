"""Sink without Spark that follows the same protocol: heartbeat file, stop file, a clean end on SIGTERM.

``write_options`` of its spec make it misbehave: ``end`` ends it in that state with ``error``, at once or after
``after`` batches; ``silent`` stops its heartbeat while it runs; ``deaf`` makes it ignore every stop request,
``blind`` only the stop file; ``compaction_error`` is reported in its last heartbeat.
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
    """Write heartbeats until stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    spec = json.loads(parser.parse_args().spec.read_text())
    manners = spec["write_options"]
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: None if "deaf" in manners else told.set())
    beat, path = 0, Path(spec["heartbeat_path"])
    while not told.wait(1 / BEATS_PER_SECOND) and not _should_stop(spec):
        if "end" in manners and beat >= int(manners.get("after", 0)):
            _beat(path, manners["end"], beat, manners.get("error"))
            sys.exit(1)
        beat += 1
        if not ("silent" in manners and beat > 1):
            _beat(path, "RUNNING", beat)
    _beat(path, "STOPPED", beat, compaction_error=manners.get("compaction_error"))


def _should_stop(spec: dict[str, object]) -> bool:
    return Path(str(spec["stop_path"])).exists() and not {"deaf", "blind"} & set(spec["write_options"])  # type: ignore[call-overload]


def _beat(path: Path, state: str, batch_id: int, error: str | None = None, **more: str | None) -> None:
    aside = path.with_suffix(".new")
    beat = {"state": state, "pid": os.getpid(), "batch_id": batch_id or None, "row_count": batch_id, "error": error}
    aside.write_text(json.dumps(beat | more))
    aside.replace(path)


if __name__ == "__main__":
    main()
