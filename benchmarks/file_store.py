"""W1 to W7 of the peers' workload: this library compared with pypaimon-rust, deltalake, DuckDB and plain Parquet.

    python -m benchmarks.file_store [--rows 3000000] [--rounds 3] [--systems ours,pypaimon-rust]

Every system does the same work in its own processes, one system after another in each round, and every answer is
compared with the expected one. Prints a table, and writes ``benchmarks/results/file_store.json`` and
``file_store.svg``.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers.aims import AIMS
from benchmarks.peers.catalogue import NAMES
from benchmarks.peers.picture import picture_of
from benchmarks.peers.workload import Size, Workload, answers_of, answers_to_json

RESULTS = Path(__file__).parent / "results"
PARTS = ("bulk", "small", "racing")
OFFERED = {
    "plain parquet": ("bulk",),
    "duckdb": ("bulk", "small"),
}
"""Parts of the workload that a system supports, if not all."""


def main() -> None:
    """Run the benchmark, print the results and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", default=",".join(NAMES))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "file_store_benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    size = Size(rows=arguments.rows, upsert_rows=max(1, arguments.rows // 15))
    shutil.rmtree(arguments.directory, ignore_errors=True)
    workload = Workload(arguments.directory / "data", size)
    say(f"making {size.rows:,} rows and {size.upserts} upserts of {size.upsert_rows:,}")
    orders = {
        "data": str(workload.directory),
        "size": asdict(size),
        "answers": answers_to_json(workload.make()),
        "loaded": answers_to_json(answers_of(workload.load)),
    }
    records = measured(arguments, orders)
    arguments.results.mkdir(parents=True, exist_ok=True)
    (arguments.results / "file_store.json").write_text(json.dumps(records, indent=1) + "\n")
    (arguments.results / "file_store.svg").write_text(picture_of(records))
    print(table_of(records))
    print(aims_of(records))
    shutil.rmtree(arguments.directory, ignore_errors=True)


def measured(arguments: argparse.Namespace, orders: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a record per work and system: seconds (minimum and median of the rounds), bytes and files written."""
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    left: dict[tuple[str, str], dict[str, int]] = {}
    lost: Counter[str] = Counter()
    for part in arguments.parts.split(","):
        for round_number in range(arguments.rounds):
            for system in arguments.systems.split(","):
                if part not in OFFERED.get(system, PARTS):
                    continue
                say(f"round {round_number + 1} of {arguments.rounds}: {part}, {system}")
                directory = arguments.directory / "tables"
                shutil.rmtree(directory, ignore_errors=True)
                answer = one_round({**orders, "system": system, "part": part, "directory": str(directory)})
                lost[system] += int(answer["seconds"].pop("W6 rows lost", 0))
                for work, took in answer["seconds"].items():
                    seconds[work, system].append(took)
                    left[work, system] = {key: answer[key] for key in ("bytes", "files", "peak_memory_bytes")}
    return [
        {
            "work": work,
            "system": system,
            "seconds_min": round(min(took), 5),
            "seconds_median": round(statistics.median(took), 5),
            "rounds": len(took),
            **left[work, system],
            **({"rows_lost": lost[system]} if work == "W6 wall" else {}),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
        }
        for (work, system), took in sorted(seconds.items())
    ]


def one_round(order: dict[str, Any]) -> dict[str, Any]:
    """Run one worker process and return the last line of its output."""
    command = [sys.executable, "-m", "benchmarks.peers.worker", json.dumps(order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{order['system']} failed at {order['part']}:\n{done.stdout}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def table_of(records: list[dict[str, Any]]) -> str:
    """Return a Markdown table of the best seconds of all rounds: a row per work, a column per system."""
    systems = [name for name in NAMES if any(record["system"] == name for record in records)]
    best = {(record["work"], record["system"]): record["seconds_min"] for record in records}
    lost = {record["system"]: record["rows_lost"] for record in records if record.get("rows_lost")}
    lines = ["| seconds, best round | " + " | ".join(systems) + " |", "|---" * (len(systems) + 1) + "|"]
    for work in sorted({record["work"] for record in records}):
        cells = [f"{best[work, system]:.3g}" if (work, system) in best else "-" for system in systems]
        lines.append(f"| {work} | " + " | ".join(cells) + " |")
    lines += [f"\n{system} lost {count:,} acknowledged rows of W6, over all rounds." for system, count in lost.items()]
    return "\n".join(lines)


def aims_of(records: list[dict[str, Any]]) -> str:
    """Return a Markdown table of the aims: the limit of each ratio, the measured ratio, and whether it is met."""
    best = {(record["work"], record["system"]): record["seconds_min"] for record in records}
    lines = ["", "| aim | at most | reached | |", "|---|---|---|---|"]
    for aim in AIMS:
        if (aim.work, aim.system) in best and (aim.peer_work, aim.peer) in best:
            ratio = best[aim.work, aim.system] / best[aim.peer_work, aim.peer]
            verdict = "yes" if ratio <= aim.at_most else "**no**"
            against = aim.peer if aim.peer_work == aim.work else f"{aim.peer}'s {aim.peer_work}"
            lines.append(f"| {aim.work}, {aim.system}, of {against} | {aim.at_most:g} | {ratio:.2f} | {verdict} |")
    return "\n".join(lines)


def say(words: str) -> None:
    """Print progress to standard error, apart from the table."""
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
