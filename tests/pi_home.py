"""Node and Pi for the tests with the real Pi, from npm, in a folder of their own.

    python tests/pi_home.py      installs what is missing; never fails, says what and why not

The folder is `.pi-test` of the checkout, or what SESSIONINDEX_PI_HOME names. A Node of this
machine that is new enough for Pi is used as it is.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PI = "@earendil-works/pi-coding-agent@1.6.0"
NODE_MAJOR = 22
NEEDED = (22, 19)
PATIENCE_S = 300
_ARCH = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


class Missing(Exception):
    """Why there is no Pi here."""


@dataclass(frozen=True)
class Installed:
    """Where Node and Pi are."""

    folder: Path
    node: Path

    @property
    def command(self) -> list[str]:
        package = self.folder / "node_modules" / PI.rpartition("@")[0]
        return [str(self.node), str(package / "dist" / "bundle" / "cli.js")]


def folder() -> Path:
    named = os.environ.get("SESSIONINDEX_PI_HOME")
    return Path(named) if named else Path(__file__).parent.parent / ".pi-test"


def version(node: Path) -> tuple[int, ...]:
    """Of a Node; () where it does not run."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(map(int, re.findall("[0-9]+", said.stdout)))


def own_node() -> Path | None:
    """The Node of this machine, if Pi runs with it."""
    named = shutil.which("node")
    return Path(named) if named and version(Path(named)) >= NEEDED else None


def found() -> Installed:
    """What is installed; raises Missing."""
    home = folder()
    made = [*(home / "node_modules").glob("node-*/bin/node")]
    node = made[0] if made else own_node()
    here = None if node is None else Installed(home, node)
    if here is None or not Path(here.command[1]).exists():
        failed = home / "failed"
        why = failed.read_text() if failed.exists() else "`make test-pi` installs it"
        raise Missing(f"the real Pi is not installed: {why}")
    return here


def install() -> Installed:
    """Have npm install what is missing, once; raises Missing."""
    home = folder()
    home.mkdir(parents=True, exist_ok=True)
    arch = platform.machine().lower()
    node = f"node-{sys.platform}-{_ARCH.get(arch, arch)}@{NODE_MAJOR}"
    packages = [PI] if own_node() else [node, PI]
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    npm = shutil.which("npm")
    why = None
    if npm is None:
        why = f"there is no npm, which would install {' and '.join(packages)}"
    else:
        command = [npm, "install", *options, "--prefix", str(home), *packages]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            if done.returncode:
                said = [line for line in done.stderr.splitlines() if "complete log" not in line]
                why = f"npm cannot install {' and '.join(packages)}: {' '.join(said[:4])}"
        except subprocess.TimeoutExpired:
            why = f"npm did not install {' and '.join(packages)} within {PATIENCE_S} s"
    if why is not None:
        (home / "failed").write_text(why)
        raise Missing(f"the real Pi is not installed: {why}")
    (home / "failed").unlink(missing_ok=True)
    here = found()
    (home / "installed").write_text(f"{here.node}\n")
    return here


def ready() -> Installed:
    """What is installed, after one try where none was made; raises Missing."""
    home = folder()
    if (home / "failed").exists() or (home / "node_modules").exists():
        return found()
    return install()


if __name__ == "__main__":
    try:
        print(f"{PI} runs with {install().node}")
    except Missing as missing:
        print(f"{missing}\nThe tests with the real Pi are skipped.", file=sys.stderr)
