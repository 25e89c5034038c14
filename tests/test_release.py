"""What `tools/check_release.py` finds in sdists and wheels."""

import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import check_release

ROOT = Path(__file__).parents[1]
WHEEL = "p-1-cp311-cp311-manylinux_2_17_x86_64.whl"
GOOD = ["p/__init__.py", "p/py.typed", "p/_fast.pyi", "p/_fast.cpython-311-x86_64-linux-gnu.so",
        "p-1.dist-info/licenses/LICENSE", "p-1.dist-info/licenses/NOTICE"]  # fmt: skip
SDIST = ["LICENSE", "NOTICE", "README.md", "pyproject.toml", "PKG-INFO", "src/p/_fast.pyi", "src/p/_fast.pyx"]


def wheel(folder, names, name=WHEEL):
    with zipfile.ZipFile(folder / name, "w") as made:
        for n in names:
            made.writestr(n, "")


def sdist(folder, names):
    with tarfile.open(folder / "p-1.tar.gz", "w:gz") as made:
        for n in names:
            made.addfile(tarfile.TarInfo(f"p-1/{n}"), io.BytesIO())


def test_what_is_whole_has_no_faults(tmp_path):
    wheel(tmp_path, GOOD)
    sdist(tmp_path, SDIST)
    assert check_release.faults(tmp_path) == []


@pytest.mark.parametrize("missing", GOOD[1:2] + GOOD[3:])
def test_what_a_wheel_lacks_is_found(tmp_path, missing):
    wheel(tmp_path, [n for n in GOOD if n != missing])
    sdist(tmp_path, SDIST)
    assert len(check_release.faults(tmp_path)) == 1


@pytest.mark.parametrize("missing", [n for n in SDIST if not n.endswith(".pyi")])
def test_what_an_sdist_lacks_is_found(tmp_path, missing):
    wheel(tmp_path, GOOD)
    sdist(tmp_path, [n for n in SDIST if n != missing])
    assert len(check_release.faults(tmp_path)) == 1


@pytest.mark.parametrize("more", ["p/_fast.pyx", "p/_fast.c", "tests/test_p.py", "changes/1.fixed.md"])
def test_what_does_not_belong_into_a_wheel_is_found(tmp_path, more):
    wheel(tmp_path, [*GOOD, more])
    sdist(tmp_path, SDIST)
    assert check_release.faults(tmp_path) == [f"{WHEEL}: {more} does not belong there"]


@pytest.mark.parametrize(
    ("tag", "taken"),
    [("cp311-cp311-linux_x86_64", False), ("cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64", True),
     ("py3-none-any", True), ("cp311-abi3-manylinux_2_28_aarch64", True)],
)  # fmt: skip
def test_tags_that_a_package_index_takes(tmp_path, tag, taken):
    wheel(tmp_path, GOOD, f"p-1-{tag}.whl")
    sdist(tmp_path, SDIST)
    assert (check_release.faults(tmp_path) == []) == taken


def test_an_empty_folder_is_no_release(tmp_path):
    assert check_release.faults(tmp_path)


@pytest.mark.parametrize(
    "project", sorted(ROOT.glob("packages/*/pyproject.toml")), ids=lambda p: p.parent.name
)
def test_the_metadata_name_the_pythons_that_are_tested(project):
    told = tomllib.loads(project.read_text())["project"]["classifiers"]
    versions = {c.rpartition(" ")[2] for c in told if c.startswith("Programming Language :: Python :: 3.")}
    noxfile = (ROOT / "noxfile.py").read_text()
    line = next(text for text in noxfile.splitlines() if text.startswith("PYTHONS = "))
    assert versions == {v for v in line.replace('"', " ").split() if v.startswith("3.")}
    assert (project.parent / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (project.parent / "NOTICE").read_text() == (ROOT / "NOTICE").read_text()
