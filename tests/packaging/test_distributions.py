"""Contents of a release: the files of the wheel, and metadata that a package index accepts and can show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from packaging.metadata import Metadata

from hatch_build import FILE, LINK, project_urls
from storage_lib.distribution import DISTRIBUTION, VERSION

CHECKOUT = Path(__file__).resolve().parents[2]
INFO = f"{DISTRIBUTION.replace('-', '_')}-{VERSION}.dist-info"
ADDRESS = "https://forge.example/owner/name"
# Files that `hatchling metadata` reads.
SOURCES_OF_METADATA = (
    "pyproject.toml",
    "hatch_build.py",
    "README.md",
    "LICENSE",
    "plugins/dynamic_table/pages/static/uPlot.LICENSE",
    "storage_lib/distribution.py",
)
SUFFIXES = {".py", ".typed", ".java", ".lark", ".xml", ".yaml", ".css", ".html", ".js", ".LICENSE", ""}


def metadata_of(address: str, project: Path) -> dict[str, object]:
    """Return the metadata of a build if the repository had this address."""
    for source in SOURCES_OF_METADATA:
        (project / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CHECKOUT / source, project / source)
    settings = project / "pyproject.toml"
    text, count = re.subn('\nrepository = ".*"\n', f'\nrepository = "{address}"\n', settings.read_text())
    assert count == 1
    settings.write_text(text)
    words = [sys.executable, "-m", "hatchling", "metadata"]
    found: dict[str, object] = json.loads(subprocess.run(words, cwd=project, check=True, capture_output=True).stdout)
    return found


def test_without_an_address_the_description_has_no_dead_link(tmp_path: Path) -> None:
    found = metadata_of("", tmp_path)

    assert not found.get("urls")
    text = str(found["readme"]["text"])  # type: ignore[index]  # JSON
    assert LINK.findall(text) == []
    assert "`docs/comparison.md`" in text
    assert ".svg" not in text


def test_the_address_of_the_repository_fills_the_urls_and_the_links(tmp_path: Path) -> None:
    found = metadata_of(f"{ADDRESS}/", tmp_path)

    assert found["urls"] == project_urls(ADDRESS, VERSION)
    readme, _, heading = project_urls(ADDRESS, VERSION)["Documentation"].partition("#")
    assert readme == f"{ADDRESS}/blob/v{VERSION}/README.md"
    assert f"\n## {heading.replace('-', ' ').capitalize()}\n" in (CHECKOUT / "README.md").read_text()
    assert project_urls(ADDRESS, VERSION)["Changelog"] == f"{ADDRESS}/blob/v{VERSION}/CHANGELOG.md"
    text = str(found["readme"]["text"])  # type: ignore[index]  # JSON
    linked = set(re.findall(r"\]\(([^)#]+)", text))
    paths = {path for _, path, _ in LINK.findall((CHECKOUT / "README.md").read_text())}
    assert LINK.findall(text) == []
    assert {FILE.format(repository=ADDRESS, version=VERSION, path=path) for path in paths} <= linked
    assert len(paths) > 10


@pytest.mark.integration
def test_the_metadata_of_the_wheel_is_valid(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = Metadata.from_email(archive.read(f"{INFO}/METADATA"), validate=True)

    assert (found.name, str(found.version), found.metadata_version) == (DISTRIBUTION, VERSION, "2.4")
    assert found.license_expression == "Apache-2.0 AND MIT"
    assert found.description_content_type == "text/markdown"
    assert (found.description or "").startswith((CHECKOUT / "README.md").read_text().partition("\n\n")[0])


@pytest.mark.integration
def test_the_wheel_holds_its_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [PurePosixPath(name) for name in archive.namelist()]

    packages = {"storage_lib", "dynamic_table", "pyspark_debezium_json", "pyspark_dynamic_table"}
    assert {name.parts[0] for name in names} == {*packages, INFO}
    assert {name.suffix for name in names if name.parts[0] != INFO} <= SUFFIXES
    assert not {"tests", "flights", "__pycache__"} & {part for name in names for part in name.parts}
    for typed in sorted(packages):
        assert PurePosixPath(typed, "py.typed") in names
    assert {name.name for name in names if name.parts[:2] == (INFO, "licenses")} == {"LICENSE", "uPlot.LICENSE"}


@pytest.mark.integration
def test_the_source_distribution_makes_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(wheel_of_sdist) as theirs:
        assert {each.filename: each.CRC for each in theirs.infolist()} == {
            each.filename: each.CRC for each in ours.infolist()
        }
