"""Checks what `python -m build` has left in a folder: one wheel and one sdist, whole and fit for an index."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from packaging.metadata import Metadata

ROOT = Path(__file__).parent.parent
SHIPPED = {".py", ".j2", ".css", ".js", ".txt", ".typed"}  # what the library needs to run


def expect(true: object, expected: str, got: object) -> None:
    if not true:
        sys.exit(f"expected {expected}; got {got}; correct pyproject.toml and build again")


def check_metadata(text: bytes, where: str) -> Metadata:
    """Valid by the packaging standards, with what a page of an index shows."""
    found = Metadata.from_email(text, validate=True)
    expect(found.name == "obverse", f"the name obverse in {where}", found.name)
    expect(not found.version.is_devrelease, f"a released version in {where}", found.version)
    expect(found.description_content_type == "text/markdown", f"Markdown in {where}", "another type")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expect((found.description or "").strip() == readme.strip(), f"README.md in {where}", "another text")
    expect(found.license_expression == "MIT", f"the license in {where}", found.license_expression)
    return found


def check(folder: Path) -> None:
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    expect(len(wheels) == len(sources) == 1, "one wheel and one sdist", f"{wheels + sources}")
    library = ROOT / "src" / "obverse"
    needed = {
        str(PurePosixPath("obverse", *file.relative_to(library).parts))
        for file in library.rglob("*")
        if file.suffix in SHIPPED and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
        [described] = [name for name in names if name.endswith(".dist-info/METADATA")]
        from_wheel = check_metadata(wheel.read(described), wheels[0].name)
    expect(needed <= names, "every file of src/obverse in the wheel", sorted(needed - names))
    expect(any(name.endswith("/LICENSE") for name in names), "LICENSE in the wheel", "none")
    with tarfile.open(sources[0]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
        [described] = [
            name for name in source.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO")
        ]
        member = source.extractfile(described)
        assert member is not None
        from_source = check_metadata(member.read(), sources[0].name)
    wanted = {f"src/{name}" for name in needed} | {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"}
    expect(wanted <= names, "the sources and their texts in the sdist", sorted(wanted - names))
    expect(
        from_wheel.version == from_source.version, "one version", (from_wheel.version, from_source.version)
    )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    expect(f"## [{from_wheel.version}] - 20" in changes, "a dated entry in CHANGELOG.md", from_wheel.version)
    sys.stdout.write(f"{wheels[0].name}, {sources[0].name}: metadata valid, {len(needed)} files in both\n")


if __name__ == "__main__":
    check(Path(sys.argv[1]))
