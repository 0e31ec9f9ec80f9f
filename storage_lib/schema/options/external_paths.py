"""External data directories: Paimon's ``data-file.external-paths``, and ``file.root-path``, which sets it.

A directory is stored as a URL in Hadoop's format (``file:/data/t``, ``s3://bucket/t``), because manifests name each
external file by its whole URL and other engines compare these as text. Metadata is never external.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from storage_lib.errors import CorruptFileError, InvalidInputError

PATHS_OPTION = "data-file.external-paths"
STRATEGY_OPTION = f"{PATHS_OPTION}.strategy"
SPECIFIC_FS_OPTION = f"{PATHS_OPTION}.specific-fs"
WEIGHTS_OPTION = f"{PATHS_OPTION}.weights"
ROOT_PATH_OPTION = "file.root-path"

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL)
_FILE = "file:"
_SHOWN_MAX = 200
_ENTROPY_BITS = 20
_ENTROPY_DIRECTORIES = ((0, 4), (4, 8), (8, 12), (12, 20))


class ExternalPathStrategy(StrEnum):
    """Strategy that chooses the directory of a new file, with Paimon's names."""

    NONE = "none"
    SPECIFIC_FS = "specific-fs"
    ROUND_ROBIN = "round-robin"
    ENTROPY_INJECT = "entropy-inject"
    WEIGHTED = "weight-robin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPaths:
    """Directories for new data files; empty ``directories`` mean the table's own directory."""

    directories: tuple[str, ...] = ()
    strategy: ExternalPathStrategy = ExternalPathStrategy.NONE
    weights: tuple[int, ...] = ()

    def url_of(self, bucket_directory: str, file_name: str, index: int) -> str | None:
        """Return a new file's URL, or None without directories. ``index`` counts a writer's files from any start."""
        if not self.directories:
            return None
        directory = self.directories[self._choice(file_name, index)]
        entropy = _entropy(file_name) if self.strategy is ExternalPathStrategy.ENTROPY_INJECT else ""
        return f"{directory}/{bucket_directory}/{entropy}{file_name}"

    def _choice(self, file_name: str, index: int) -> int:
        if not self.weights:
            return index % len(self.directories)
        ends = list(accumulate(self.weights))
        return bisect_right(ends, zlib.crc32(file_name.encode()) % ends[-1])


def external_paths_of(options: Mapping[str, str]) -> ExternalPaths:
    """Parse the options for new data files. Raises ``InvalidInputError`` for values that Paimon rejects as well."""
    strategy = _strategy(options)
    listed = declared_directories(options)
    if strategy is ExternalPathStrategy.NONE or not listed:
        return ExternalPaths()
    weights: tuple[int, ...] = ()
    if strategy is ExternalPathStrategy.SPECIFIC_FS:
        wanted = options.get(SPECIFIC_FS_OPTION, "").strip().lower()
        listed = tuple(each for each in listed if each.partition(":")[0].lower() == wanted)
        if not listed:
            message = (
                f"{STRATEGY_OPTION}={strategy} takes the directories of {PATHS_OPTION} whose scheme is "
                f"{SPECIFIC_FS_OPTION}={wanted or '(not given)'}, and there is none; give one of them"
            )
            raise InvalidInputError(message)
    if strategy is ExternalPathStrategy.WEIGHTED:
        weights = _weights(options.get(WEIGHTS_OPTION), len(listed))
    return ExternalPaths(directories=listed, strategy=strategy, weights=weights)


def declared_directories(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return every directory in the options, whether or not new files go there. Raises as ``external_url`` does."""
    texts = (each.strip() for each in options.get(PATHS_OPTION, "").split(","))
    return tuple(dict.fromkeys(external_url(each, PATHS_OPTION) for each in texts if each))


def is_of_directories(key: str) -> bool:
    """Whether an option configures the location of data files."""
    return key == ROOT_PATH_OPTION or key.startswith(PATHS_OPTION)


def external_url(text: str, option: str) -> str:
    """Return a directory's URL in Hadoop's format: single slashes, and none at the end.

    Raises ``InvalidInputError`` for a URL without a scheme or bucket, with ``.`` or ``..``, or of the root of a disk.
    """
    found = _URL.fullmatch(text)
    if found is None:
        message = f"option {option}: {text!r} has no scheme; write file:/data/orders, s3://bucket/orders or the like"
        raise InvalidInputError(message)
    scheme, authority = found["scheme"], found["authority"] or ""
    parts = [part for part in found["path"].split("/") if part]
    if any(part in (".", "..") for part in parts):
        message = f"option {option}: {text!r} has '.' or '..' in it; write the directory out"
        raise InvalidInputError(message)
    if scheme == "file":
        if authority not in ("", "localhost") or not found["path"].startswith("/"):
            message = f"option {option}: {text!r} is not an absolute local path; write file:/data/orders"
            raise InvalidInputError(message)
        authority = ""
    elif not authority:
        message = f"option {option}: {text!r} names no server or bucket; write s3://bucket/orders or the like"
        raise InvalidInputError(message)
    if scheme == "file" and not parts:
        message = f"option {option}: {text!r} is the root of the disk; write file:/data/orders or the like"
        raise InvalidInputError(message)
    start = f"{scheme}://{authority}" if authority else f"{scheme}:"
    return "/".join((start, *parts))


def with_root_path(options: Mapping[str, str], table: str) -> dict[str, str]:
    """Replace ``file.root-path`` by Paimon's options for a directory of the table below it.

    ``table`` is ``database.table``. Raises ``InvalidInputError`` if those options are given as well.
    """
    root = options.get(ROOT_PATH_OPTION)
    if root is None:
        return dict(options)
    if PATHS_OPTION in options or STRATEGY_OPTION in options:
        message = f"option {ROOT_PATH_OPTION} sets {PATHS_OPTION} and its strategy; give the one or the other"
        raise InvalidInputError(message)
    url = external_url(f"{_FILE}{root}" if root.startswith("/") else root, ROOT_PATH_OPTION)
    database, _, name = table.partition(".")
    others = {key: value for key, value in options.items() if key != ROOT_PATH_OPTION}
    return {
        **others,
        PATHS_OPTION: f"{url}/{database}.db/{name}",
        STRATEGY_OPTION: ExternalPathStrategy.ROUND_ROBIN.value,
    }


def refuse_idle_directories(table: str, options: Mapping[str, str]) -> None:
    """Raise ``InvalidInputError`` if directories are given without a strategy."""
    if PATHS_OPTION in options and STRATEGY_OPTION not in options:
        message = (
            f"table {table}: option {PATHS_OPTION} does nothing without {STRATEGY_OPTION}; set it to "
            f"{ExternalPathStrategy.ROUND_ROBIN} to write data files there, or to none to keep it for later"
        )
        raise InvalidInputError(message)


def io_path(url: str) -> str:
    """Convert a file's URL in a manifest for ``FileIO``: ``file:`` URLs to plain paths, others unchanged.

    Raises ``CorruptFileError`` for an invalid URL.
    """
    if _URL.fullmatch(url) is None or "\0" in url:
        message = f"external path {url[:_SHOWN_MAX]!r} is not the URL of a file; the metadata that names it is damaged"
        raise CorruptFileError(message)
    if not url.startswith(_FILE):
        return url
    path = url.removeprefix(_FILE)
    return "/" + path.lstrip("/")


def _entropy(file_name: str) -> str:
    bits = format(zlib.crc32(file_name.encode()) % (1 << _ENTROPY_BITS), f"0{_ENTROPY_BITS}b")
    return "".join(f"{bits[start:end]}/" for start, end in _ENTROPY_DIRECTORIES)


def _strategy(options: Mapping[str, str]) -> ExternalPathStrategy:
    text = options.get(STRATEGY_OPTION, ExternalPathStrategy.NONE)
    try:
        return ExternalPathStrategy(text.strip().lower())
    except ValueError as error:
        known = ", ".join(ExternalPathStrategy)
        message = f"option {STRATEGY_OPTION} is {text!r}; it has to be one of {known}"
        raise InvalidInputError(message) from error


def _weights(text: str | None, count: int) -> tuple[int, ...]:
    # Paimon uses round-robin for a single directory and without weights.
    if text is None or count == 1:
        return ()
    parts = [each.strip() for each in text.split(",")]
    weights = tuple(int(each) for each in parts if each.isascii() and each.isdigit() and int(each) > 0)
    if len(weights) != len(parts) or len(weights) != count:
        message = f"option {WEIGHTS_OPTION} is {text!r}; give a positive integer for each of the {count} directories"
        raise InvalidInputError(message)
    return weights
