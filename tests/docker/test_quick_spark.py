"""Settings with which Spark's drivers start quickly, and when they are not applied."""

from __future__ import annotations

from pathlib import Path

import pytest

import quick_spark as subject
import stack_setup
from quick_spark import archiving_spark, quick_spark


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of an archive elsewhere, in an environment without Spark's variables."""
    path = tmp_path / "spark" / "classes.jsa"
    path.parent.mkdir()
    path.touch()
    monkeypatch.setattr(subject, "ARCHIVE", path)
    monkeypatch.setattr(stack_setup, "ARCHIVE", path)
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS", raising=False)
    return path


def test_drivers_are_told_of_the_archive_that_setup_made(archive: Path) -> None:
    assert f"-XX:SharedArchiveFile={archive}" in quick_spark()["SPARK_SUBMIT_OPTS"].split()


def test_without_an_archive_they_only_compile_less(archive: Path) -> None:
    archive.unlink()

    assert quick_spark() == {
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    }


@pytest.mark.parametrize("options", ["-XX:TieredStopAtLevel=4", "-Xmx2g -XX:+UseG1GC"])
def test_options_of_the_user_come_last_where_they_win_however_often_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", options)
    once = quick_spark()
    for name, value in once.items():
        monkeypatch.setenv(name, value)

    assert once["SPARK_SUBMIT_OPTS"].endswith(f" {options}")
    assert ("UseSerialGC" in once["SPARK_SUBMIT_OPTS"]) is ("UseG1GC" not in options)
    assert quick_spark() == once


def test_setup_starts_the_archiving_session_under_options_that_write_the_archive(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive created by another Java can't be overwritten while it is mapped."""
    run = []
    monkeypatch.setattr(stack_setup, "run", lambda *words: run.append([str(word) for word in words]))

    stack_setup.archive_spark()

    assert not archive.exists()
    ((program, *words),) = run
    assert program == "env"
    assert f"SPARK_SUBMIT_OPTS={archiving_spark(archive)['SPARK_SUBMIT_OPTS']}" in words
    assert f"-XX:ArchiveClassesAtExit={archive}" in " ".join(words)
    assert Path(words[-1]).exists()


def test_another_java_gets_an_archive_of_its_own(tmp_path: Path) -> None:
    lock, java, other = (tmp_path / name for name in ("lock", "java", "other"))
    for file in (lock, java, other):
        file.touch()

    assert stack_setup.java_fingerprint(java, lock) == stack_setup.java_fingerprint(java, lock)
    assert stack_setup.java_fingerprint(java, lock) != stack_setup.java_fingerprint(other, lock)
