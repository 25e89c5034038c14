"""Which sessions of CI a change makes run."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

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
