"""Pins the images of the compose stack: gets the digests from the registry and writes them into ``.env``.

    python3 docker/pin_images.py          # needs docker with buildx, and the registry

A tag can be moved to another image, a digest cannot. Commit the file, so that later deployments use the tested images.
Standard library only.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

__all__ = ["pin", "versions"]

HERE = Path(__file__).resolve().parent
NAMED = re.compile(r"^\s*(?:image:(?: &\S+)?|FROM) ([\w./-]+:[\w.-]+)\$\{(\w+)-?\}$", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def versions(folder: Path = HERE) -> dict[str, str]:
    """Return the image and version of each variable that holds a digest."""
    texts = ((folder / name).read_text() for name in ("compose.yaml", "Dockerfile"))
    return {variable: image for text in texts for image, variable in NAMED.findall(text)}


def pin(folder: Path = HERE) -> dict[str, str]:
    """Write the digests into ``.env`` and return them by variable; SystemExit says which image has none."""
    found = {variable: f"@{_digest(image)}" for variable, image in sorted(versions(folder).items())}
    place = folder / ".env"
    comments = [line for line in place.read_text().splitlines() if line.startswith("#")]
    new = place.with_name(".env.new")
    new.write_text("\n".join([*comments, *(f"{variable}={digest}" for variable, digest in found.items())]) + "\n")
    new.replace(place)
    return found


def _digest(image: str) -> str:
    asked = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    digest = done.stdout.strip()
    if done.returncode or not DIGEST.fullmatch(digest):
        sys.exit(f"pin_images: {image} has no digest: {' '.join(asked)} said {done.stdout}{done.stderr}")
    return digest


if __name__ == "__main__":
    for variable, digest in pin().items():
        print(variable, digest)
