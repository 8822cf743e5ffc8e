"""What people get: the wheel alone in an environment of its own, and the sdist it can be built from again."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # archives are built, and processes started, one for each command
ROOT = Path(__file__).parent.parent
SECONDS = 1800
# Packages that the extras bring, and those of developers: nobody has them who has installed obverse alone.
REFUSE = """
import sys
from importlib.machinery import PathFinder


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {names} else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
MODULES = {
    "dask": "distributed",
    "torch-fidelity": "torch_fidelity",
}  # modules that are not called as their package


def run(*command: object, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and the wheel that is built from it: what an index would have."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    return folder


def test_the_source_and_the_sdist_give_the_same_wheel(archives: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT, folder=tmp_path)
    [again], [wheel] = tmp_path.glob("*.whl"), archives.glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()
    said = run(sys.executable, ROOT / ".ci" / "check_archives.py", archives, folder=tmp_path)
    assert "metadata valid" in said


def extras() -> list[str]:
    """Modules of the packages that only an extra names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [
        [word.partition("[")[0].partition(">")[0].partition("=")[0].strip() for word in words]
        for words in (project["dependencies"], *project["optional-dependencies"].values())
    ]
    only = {name for some in names[1:] for name in some} - set(names[0])
    return sorted(
        {name.replace("-", "_") for name in only} | {MODULES[name] for name in only & MODULES.keys()}
    )


def test_the_wheel_alone_runs_the_example_of_every_command(archives: Path, tmp_path: Path) -> None:
    """In an environment with the declared dependencies, those of this one, and nothing else."""
    place = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", place, folder=tmp_path)
    library = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    [wheel] = archives.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", place / "bin" / "python"]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, folder=tmp_path)
    # A line of a .pth file that is a folder: the .pth files in there are not read, so that what is installed
    # for editing here is not there.
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (library / "sitecustomize.py").write_text(REFUSE.format(names=set(extras())))
    said = run(
        sys.executable, ROOT / ".ci" / "try_examples.py", place / "bin", tmp_path / "work", folder=tmp_path
    )
    assert " 0 failed" in said
    assert "asked for its extra: obverse search" in said
    assert said.count("\nran: ") >= 15
