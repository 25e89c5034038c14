"""Which sessions of CI a change makes run."""

import ast
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lock
import sessions

ROOT = Path(__file__).parents[1]
ALWAYS = {"build", "pysparks", "lint", "layers", "documents"}
FOLDERS = {
    "unit-3.11(hudi-format)": ["packages/hudi-format/tests"],
    "unit-3.11(hudi-index)": ["packages/hudi-index/tests"],
    "unit-3.11(hudi-timeline)": ["packages/hudi-timeline/tests"],
    "spark(3.5)": ["packages/hudi-spark/tests"],
    "spark(4)": ["packages/hudi-spark/tests"],
    "scenario": ["tests/scenarios", "tests/golden"],
    "interop": ["tests/interop"],
    "lowest-3.11": [f"packages/{p}/tests" for p in sessions.PACKAGES[:3]],
    "fuzz_smoke": ["fuzz"],
    "bench_smoke": ["benchmarks"],
}
TESTS = {*FOLDERS}


def test_each_session_is_in_the_noxfile():
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {re.split(r"-3|\(", name)[0] for name in sessions.BY_NAME} <= defined


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("docs/guide/table-type.md", {"docs"}),
        ("tools/pages/options.py", {"docs", *TESTS}),
        ("packages/hudi-spark/CHANGELOG.md", set()),
        ("packages/hudi-spark/changes/7.fixed.md", set()),
        ("packages/hudi-spark/src/hudi_spark/session.py",
         {"docs", "wheels", "types", "spark(3.5)", "spark(4)", "scenario", "interop", "bench_smoke"}),
        ("packages/hudi-format/src/hudi_format/model.py", {"docs", "wheels", "types", "simulation_smoke", *TESTS}),
        ("packages/hudi-timeline/src/hudi_timeline/table.py",
         {"docs", "wheels", "types", "simulation_smoke", *TESTS} - {"unit-3.11(hudi-format)", "unit-3.11(hudi-index)"}),
        ("packages/hudi-timeline/tests/test_promises.py", {"unit-3.11(hudi-timeline)", "lowest-3.11"}),
        ("packages/hudi-timeline/tests/support/forks.py", TESTS),
        ("tests/interop/test_index.py", {"interop"}),
        ("tools/interop/ours.py", {*TESTS}),
        ("tools/check_layers.py", set()),
        ("tools/check_wheels.py", {"wheels"}),
        ("requirements/ci.txt", {*sessions.BY_NAME}),
        ("noxfile.py", {*sessions.BY_NAME}),
    ],
)  # fmt: skip
def test_a_change_runs_what_it_can_break(path, more):
    assert set(sessions.affected([path])) == ALWAYS | more


def test_nothing_changed_nothing_runs():
    assert sessions.affected([]) == []


def test_sessions_come_after_what_they_need():
    place = {name: n for n, name in enumerate(sessions.BY_NAME)}
    for session in sessions.SESSIONS:
        assert all(place[need] < place[session.name] for need in session.needs)


@pytest.mark.parametrize("name", FOLDERS)
def test_what_tests_import_is_an_input_of_their_session(name):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    session = sessions.BY_NAME[name]
    checked = 0
    for folder in FOLDERS[name]:
        for file in (ROOT / folder).rglob("*.py"):
            assert session.takes(file.relative_to(ROOT).as_posix())
            for module in re.findall(r"^\s*(?:from|import) (\w+)", file.read_text(), re.MULTILINE):
                for path in settings["pythonpath"]:
                    shared = [p for p in (ROOT / path / f"{module}.py", ROOT / path / module) if p.exists()]
                    for found in shared:
                        inside = found if found.is_file() else found / "__init__.py"
                        assert session.takes(inside.relative_to(ROOT).as_posix()), f"{file} imports {found}"
                        checked += 1
    assert checked or name in ("unit-3.11(hudi-index)", "fuzz_smoke", "bench_smoke")


# The session functions of noxfile.py that install with `_install`, and the tests that they run.
INSTALLED = {
    "unit": [f"packages/{p}/tests" for p in sessions.PACKAGES[:3]],
    "spark": ["packages/hudi-spark/tests"],
    "spark_full": ["packages/hudi-spark/tests"],
    "scenario": ["tests/scenarios", "tests/golden"],
    "soak": [
        *(f"packages/{p}/tests" for p in sessions.PACKAGES),
        "tests/scenarios",
        "tests/golden",
        "tests/guides",
    ],
    "interop": ["tests/interop"],
    "interop_full": ["tests/interop"],
    "documents": ["tests/guides"],
}


def closure(requirements):
    """Names of the distributions that requirements bring, in lower case with dashes."""
    known, todo = set(), [Requirement(r) for r in requirements]
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        extras = {"", *wanted.extras}
        if (name, *sorted(extras)) in known:
            continue
        known.add((name, *sorted(extras)))
        try:
            more = [Requirement(r) for r in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            continue
        todo += [r for r in more if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]
    return {name for name, *_ in known}


def imports_of(file):
    """The modules that a file imports as it is imported itself."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("name", INSTALLED)
def test_a_session_installs_what_its_tests_import(name):
    """One that installs less fails as a whole, and nowhere else: other environments have the library."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    call = next(
        n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n.func) == "_install"
    )
    groups = [
        a.value.id.lower() for a in call.args if isinstance(a, ast.Starred) and isinstance(a.value, ast.Name)
    ]
    assert "testing" in groups
    packages = sessions.PACKAGES[: 4 if any("PYSPARKS" in ast.unparse(a) for a in call.args) else 3]
    brought = closure([*lock.group(*groups), *lock.of_packages(packages, extras=()), *packages])
    distributions = metadata.packages_distributions()
    checked = set()
    for folder in INSTALLED[name]:
        for file in (ROOT / folder).rglob("*.py"):
            for module in imports_of(file):
                from_there = {canonicalize_name(d) for d in distributions.get(module, ())}
                assert not from_there or from_there & brought, (
                    f"{file} imports {module}: {name} has no {from_there}"
                )
                checked |= from_there
    assert "pytest" in checked


def git(folder, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "whole"
    folder.mkdir()
    git(folder, "init", "-q")
    for text in ("1", "2"):
        (folder / "a.txt").write_text(text)
        (folder / f"{text}.txt").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", text)
    return folder


def test_changes_of_commits_and_of_the_work_tree_count(repository):
    assert sessions.changed_since(repository, "HEAD") == []
    assert sessions.head(repository)
    (repository / "new.txt").write_text("")
    (repository / "1.txt").unlink()
    assert sessions.changed_since(repository, "HEAD~1") == ["1.txt", "2.txt", "a.txt", "new.txt"]
    assert sessions.head(repository) is None, "a changed work tree is no commit's state"


def test_a_clone_of_one_commit_knows_no_other(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--depth=1", repository.as_uri(), "shallow")
    assert sessions.changed_since(tmp_path / "shallow", "HEAD~1") is None
    assert sessions.changed_since(tmp_path, "HEAD") is None, "no repository at all"
