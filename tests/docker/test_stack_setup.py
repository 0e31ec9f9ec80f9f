"""Setup reports missing requirements, is quick if there is nothing to do, and recovers from an interrupted run.

Only parts without network access run here; `.ci/run` builds the whole stack from scratch on a fresh machine.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import stack_setup
from java_runtime import JavaMissingError, find_java

CHECKOUT = Path(__file__).parents[2]
SCRIPT = CHECKOUT / "docker" / "local" / "stack_setup.py"


def fake_java(folder: Path, version: str) -> Path:
    """Create a JAVA_HOME whose java prints only its version, like the real one on standard error."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of one part of a relocated setup, which counts as usable."""
    monkeypatch.setattr(stack_setup, "CHECKOUT", tmp_path)
    monkeypatch.setattr(stack_setup, "LOCAL", tmp_path / ".local")
    monkeypatch.setattr(stack_setup, "KAFKA", tmp_path / ".local" / "part")
    return tmp_path / ".local" / "part"


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_17_and_21_are_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java() == java


@pytest.mark.parametrize(("version", "says"), [("1.8.0_402", "Java 8"), ("25.0.1", "Java 25")])
def test_another_java_is_refused_by_name(
    version: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissingError, match=f"JAVA_HOME is {tmp_path}, but .* is {says}"):
        find_java()


def test_a_java_that_does_not_run_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like the placeholder of macOS, which only reports that Java is missing."""
    fake_java(tmp_path, "17.0.15").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissingError, match="java does not run"):
        find_java()


def test_the_remedy_names_a_fitting_java_of_this_machine_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("java_runtime.USUAL_PLACES", (f"{tmp_path}/*/bin/java",))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    fake_java(tmp_path / "a-newer-one", "25.0.1")

    with pytest.raises(JavaMissingError, match="apt install openjdk-17"):
        find_java()
    fake_java(tmp_path / "fitting", "21.0.2")
    with pytest.raises(JavaMissingError, match=f"export JAVA_HOME={tmp_path}/fitting\n"):
        find_java()


def test_without_java_setup_says_what_to_install(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}

    said = subprocess.run([sys.executable, str(SCRIPT)], env=env, capture_output=True, text=True, check=False)

    assert said.returncode == 1
    assert "Java 17 or 21 is needed" in said.stderr
    assert "then run the same command again" in said.stderr
    assert "Traceback" not in said.stderr


def test_an_older_python_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SystemExit, match=r"(?s)Python 3.11, 3.12 or 3.13 is needed; this is 3.9.*apt install.*brew"):
        stack_setup.use_a_fitting_python()


def test_a_stand_in_for_a_python_that_is_not_there_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version manager puts a ``python3.13`` on PATH that only reports that this version is not selected."""
    taken = []
    for name, code in (("python3.13", 127), ("python3.12", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr("os.execv", lambda program, _: taken.append(program))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SystemExit):  # the real one never returns
        stack_setup.use_a_fitting_python()
    assert taken == [str(tmp_path / "python3.12")]


def test_an_environment_that_has_lost_its_python_is_made_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_setup, "VENV", place)
    python = place / "bin" / "python"

    def act() -> None:
        python.parent.mkdir(parents=True)
        python.touch()

    wanted = f"{stack_setup.CHECKOUT} 1"
    stack_setup.make(place, "an environment", wanted, act)
    python.unlink()

    assert stack_setup.make(place, "an environment", wanted, act)
    assert python.exists()


def test_a_second_setup_is_quick_and_silent() -> None:
    stamp = stack_setup.VENV / ".stamp"
    # In a checkout that borrows another one's .local, the setup would delete that one's environment.
    if not stamp.exists() or not stack_setup.was_made_here(stamp.read_text()):
        pytest.skip("nothing is set up here: run `make setup`")
    subprocess.run([sys.executable, str(SCRIPT)], check=True)

    said = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True)

    assert said.stdout == "", "a part that is made again is named"


@pytest.mark.parametrize("which", ["core", "lowest"])
@pytest.mark.usefixtures("place")
def test_the_core_and_the_lowest_versions_need_neither_java_nor_another_part(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(stack_setup, "find_java", lambda: pytest.fail("Java was looked for"))
    monkeypatch.setattr(stack_setup, "project_fingerprint", lambda: "1")
    monkeypatch.setattr(stack_setup, "make", lambda where, *_: made.append(where.name))

    stack_setup.main([which])

    assert made == [which]


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"unknown part '--help'.*core, lowest.*servers"):
        stack_setup.main(["--help"])


def test_a_part_is_made_once(place: Path) -> None:
    made = []

    def act() -> None:
        made.append("made")
        place.mkdir(parents=True)

    assert stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 1", act)
    assert not stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 1", act)
    assert made == ["made"]


def test_a_part_left_half_done_is_made_anew(place: Path) -> None:
    def killed() -> None:
        place.mkdir(parents=True)
        (place / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 1", killed)
    stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 1", lambda: place.mkdir(parents=True))

    assert [file.name for file in place.iterdir()] == [".stamp"]


def test_an_update_keeps_what_is_there_but_a_killed_one_starts_over(place: Path) -> None:
    stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 1", lambda: place.mkdir(parents=True))
    (place / "kept").touch()

    stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 2", lambda: None)
    assert (place / "kept").exists()

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 3", killed)
    stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 3", lambda: place.mkdir(parents=True))
    assert not (place / "kept").exists()


def test_an_environment_that_was_moved_is_made_anew(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "kept").touch()
    (place / ".stamp").write_text("/somewhere/else 1")

    stack_setup.make(place, "a part", f"{stack_setup.CHECKOUT} 1", lambda: place.mkdir(parents=True))

    assert not (place / "kept").exists()


def test_jars_that_are_not_the_pinned_ones_are_not_used(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = tmp_path / "sums"
    sums.write_text(f"{'0' * 64}  kafka.jar\n")
    aside = tmp_path / "aside"

    def resolve(*_: Path) -> Path:
        (aside / "lib").mkdir(parents=True)
        (aside / "lib" / "kafka.jar").write_text("not Kafka")
        return aside

    monkeypatch.setattr(stack_setup, "resolve_jars", resolve)

    with pytest.raises(stack_setup.SetupError, match=r"not the pinned ones: kafka\.jar"):
        stack_setup.fetch_jars(Path("java"), place, tmp_path / "parts", sums)
    assert not place.exists()


def test_without_go_the_s3_server_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(stack_setup.SetupError, match=r"(?s)Go is needed.*apt install golang.*brew install go"):
        stack_setup.build_s3_server()


def test_a_failing_command_is_shown_with_what_it_said(place: Path) -> None:
    place.parent.mkdir()

    with pytest.raises(stack_setup.SetupError, match=r"(?s)this failed:.*no such package"):
        stack_setup.run("sh", "-c", "echo no such package; exit 1")


def test_two_setups_at_once_wait_for_each_other(place: Path) -> None:
    place.parent.mkdir()
    order = []

    def second() -> None:
        with stack_setup.one_at_a_time():
            order.append("second")

    with stack_setup.one_at_a_time():
        other = threading.Thread(target=second)
        other.start()
        other.join(0.2)
        order.append("first")
    other.join()

    assert order == ["first", "second"]


def test_a_command_that_needs_no_setup_does_not_wait_for_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_setup, "find_java", lambda: Path("java"))
    part = stack_setup.Part(place, "a part", f"{stack_setup.CHECKOUT} 1", lambda: place.mkdir(parents=True))
    monkeypatch.setattr(stack_setup, "parts_of_all", lambda _: [part])
    stack_setup.make(*part)

    with stack_setup.one_at_a_time():
        other = threading.Thread(target=stack_setup.set_up_and, args=([],), daemon=True)
        other.start()
        other.join(60)

    assert not other.is_alive()


def test_a_command_that_outlives_its_setup_keeps_the_lock(place: Path) -> None:
    place.parent.mkdir()
    with stack_setup.one_at_a_time():
        command = subprocess.Popen(["sleep", "60"], close_fds=False)

    with (stack_setup.LOCAL / "setup.lock").open("w") as turn:
        with pytest.raises(BlockingIOError):
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        command.kill()
        command.wait()
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_the_machine_told_pip_reaches_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path} {tmp_path / 'gone'}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("UV_DEFAULT_INDEX", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)

    env = stack_setup.environment_for_uv()

    assert env["UV_DEFAULT_INDEX"] == "https://index.example/simple"
    assert env["UV_FIND_LINKS"] == str(tmp_path)
    assert "PYTHONDONTWRITEBYTECODE" not in env


def test_the_locks_name_no_index() -> None:
    for lock in (stack_setup.LOCK, stack_setup.PAIMON_LOCK, stack_setup.ICEBERG_LOCK):
        assert "://" not in lock.read_text()


def test_make_alone_lists_the_targets() -> None:
    if shutil.which("make") is None:
        pytest.skip("no make here")

    said = subprocess.run(["make"], cwd=CHECKOUT, capture_output=True, text=True, check=True)

    listed = [line.split()[1] for line in said.stdout.splitlines()]
    assert {"help", "setup", "demo", "test", "check", "bench", "clean", "down", "lock"} <= set(listed)
