"""The versions of what sessions install: `requirements/*.txt`, from what pyproject.toml and the packages ask for.

    python tools/lock.py            are the files up to date with what is asked for?  Offline, by a hash in each.
    python tools/lock.py --refresh  the newest versions of all (nox session `lock`); `--keep` leaves those that fit.

`ci.txt` constrains every session but `lowest`, whose versions are in `lowest.txt`: the lowest that the three lower
packages declare.  PySpark has a file for each of its versions, because the two do not go into one environment.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
PACKAGES = ("hudi-format", "hudi-index", "hudi-timeline", "hudi-spark")
EXTRAS = ("s3", "sql", "zookeeper", "pandas", "polars")  # of the packages, which sessions install
PYTHON = "3.11"  # the oldest; other versions get lines of their own where they differ
CONSTRAINTS = FOLDER / "ci.txt"
LOWEST = FOLDER / "lowest.txt"
PYSPARKS = {"3.5": "pyspark==3.5.5", "4": "pyspark>=4.1,<5"}
_HEAD = "# Made by `nox -s lock`; from requirements with the hash "


def _project(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def group(*names: str) -> list[str]:
    """The requirements of dependency groups of pyproject.toml, with those that they include."""
    known = _project(ROOT / "pyproject.toml")["dependency-groups"]
    out: list[str] = []
    for name in names:
        for item in known[name]:
            out += [item] if isinstance(item, str) else group(item["include-group"])
    return list(dict.fromkeys(out))


def of_packages(packages: tuple[str, ...], extras: tuple[str, ...] = EXTRAS) -> Iterator[str]:
    """What packages, and these extras of them, depend on, without each other."""
    for package in packages:
        project = _project(ROOT / "packages" / package / "pyproject.toml")["project"]
        more = project.get("optional-dependencies", {})
        for wanted in (*project["dependencies"], *(w for e in extras for w in more.get(e, ()))):
            if not wanted.startswith(PACKAGES):
                yield wanted


def lowest() -> list[str]:
    """What the three lower packages depend on, each in the lowest version that it declares."""
    found: dict[str, tuple[int, ...]] = {}
    for wanted in of_packages(PACKAGES[:3]):
        name, low = re.match(r"([\w-]+)>=([\d.]+)", wanted).groups()  # type: ignore[union-attr]
        found[name] = max(found.get(name, ()), tuple(map(int, low.split("."))))
    found.pop("fsspec")  # s3fs asks for the one of its own version
    return [f"{name}=={'.'.join(map(str, low))}" for name, low in found.items()]


def lowest_session() -> list[str]:
    """Everything that the session `lowest` installs beside the packages."""
    others = [w for w in group("testing") if re.match(r"[\w-]+", w)[0] not in ("s3fs", "pandas")]  # type: ignore[index]
    return [*others, *lowest()]


def wanted() -> dict[Path, list[str]]:
    """The requirements of each file."""
    groups = _project(ROOT / "pyproject.toml")["dependency-groups"]
    every = {*group(*groups), *of_packages(PACKAGES)}
    return {
        CONSTRAINTS: sorted(w for w in every if not w.startswith("pyspark")),
        LOWEST: sorted(lowest_session()),
        **{FOLDER / f"pyspark-{name}.txt": [wanted] for name, wanted in PYSPARKS.items()},
    }


def _head(requirements: list[str]) -> str:
    return _HEAD + hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:16]


def pinned(name: str, path: Path = CONSTRAINTS) -> str:
    """`name==version` as a file has it."""
    match = re.search(rf"^{re.escape(name)}==[^\s;]+", path.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise LookupError(f"{path.name} has no {name}; `nox -s lock` writes it")
    return match[0]


def violations() -> list[str]:
    out = []
    for path, requirements in wanted().items():
        head = path.read_text(encoding="utf-8").partition("\n")[0] if path.is_file() else ""
        if head != _head(requirements):
            name = path.relative_to(ROOT)
            out.append(f"{name}: requirements have changed since it was made; `nox -s lock` makes it anew")
    return out


def refresh(*, keep: bool) -> None:
    """Resolve all files again; it needs uv and a package index."""
    FOLDER.mkdir(exist_ok=True)
    for path, requirements in wanted().items():
        command = ["uv", "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--output-file", str(path),
                   "--python-version", PYTHON, "--no-emit-index-url", "--no-emit-find-links"]  # fmt: skip
        command += ["--universal"] if path != LOWEST else []
        command += [] if keep else ["--upgrade"]
        subprocess.run(command, input="\n".join(requirements), text=True, check=True, cwd=ROOT,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        path.write_text(f"{_head(requirements)}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if "--refresh" in arguments:
        refresh(keep="--keep" in arguments)
    found = violations()
    print("\n".join(found) or "lock: requirements/*.txt are of what is asked for")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
