"""`tools/run.py`: a session that hangs is ended and told, what a session leaves running is ended, the others run."""

import os
import sys

import pytest

import run
import sessions

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found in /proc")

# In the place of nox; called with `-s NAME`.
NOX = """
import os, subprocess, sys, time

waits = [sys.executable, "-c", "import time; time.sleep(3600)"]
match sys.argv[2]:
    case "hangs":
        time.sleep(3600)
    case "leaves":
        # As PySpark's daemon and killed writers: in a session of its own, with the output that it was given.
        print("left", subprocess.Popen(waits, start_new_session=True).pid, flush=True)
    case "sleeps":
        time.sleep(0.5)
    case "says" | "writes":
        print(f"{sys.argv[2]}: {os.environ.get('HUDI_TEST_WORKERS')}")
    case "files":
        import tempfile

        with tempfile.NamedTemporaryFile(delete=False) as file:
            print("made", file.name, flush=True)
    case "fails":
        sys.exit(3)
"""


@pytest.fixture
def nox(tmp_path):
    (tmp_path / "nox.py").write_text(NOX)
    return [sys.executable, str(tmp_path / "nox.py")]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.sampled(2)
def test_a_session_that_hangs_is_ended_and_told(nox, capfd, kept):
    assert not run.run_session(nox, "hangs", kept=kept, longest_s=1)
    said = capfd.readouterr().out
    assert "--- hangs: HUNG, ended after 1 s" in said
    assert "nox.py -s hangs" in said, "what ran is told"
    assert "--- hangs: FAILED" in said
    assert not run._processes(run._mark())


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.sampled(2)
def test_what_a_session_leaves_running_is_ended(nox, capfd, monkeypatch, kept):
    monkeypatch.setattr(run, "GRACE_S", 2)
    assert run.run_session(nox, "leaves", kept=kept)
    said = capfd.readouterr().out.splitlines()
    pid = next(line.split()[1] for line in said if line.startswith("left "))
    assert any(line.startswith(f"--- leaves left, and now ended: {pid} ") for line in said)
    assert not run._processes(run._mark())


def test_a_process_that_has_no_environment_yet_is_waited_for(monkeypatch, tmp_path):
    """Between the start of its program and its first instruction: one that is seen then would never be ended."""
    loading, kernel = tmp_path / "100", tmp_path / "101"
    for folder in (loading, kernel):
        folder.mkdir()
        (folder / "environ").write_bytes(b"")
        (folder / "cmdline").write_bytes(b"python\0")
    (loading / "exe").symlink_to(sys.executable)
    monkeypatch.setattr(run, "_process_folders", lambda: iter([kernel, loading]))
    slept = []

    def loaded(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            (loading / "environ").write_bytes(f"{run.MARK}=;1:tests;\0".encode())

    monkeypatch.setattr(run.time, "sleep", loaded)
    assert run._processes(";1:tests;") == {100: "python"}
    assert len(slept) == 3


def session(name, *needs):
    return sessions.Session(name, (), needs)


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.sampled(3)
def test_sessions_after_one_that_hangs_are_run(nox, monkeypatch, capfd, at_once):
    monkeypatch.setattr(run, "LONGEST_S", 8)  # the others begin and end within it on a loaded machine too
    made = [
        session("fails"),
        session("hangs"),
        session("wheels"),
        session("passes", "wheels"),
    ]
    monkeypatch.setattr(run, "BY_NAME", {s.name: s for s in made})
    assert run.run_sessions(nox, [s.name for s in made], at_once=at_once) == ["fails", "hangs"]
    assert "--- passes: passed" in capfd.readouterr().out


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.sampled(3)
def test_a_session_waits_for_what_it_needs_and_is_not_run_without(nox, monkeypatch, capfd, at_once):
    made = [session("sleeps"), session("writes", "sleeps"), session("fails"),
            session("after", "fails"), session("later", "after")]  # fmt: skip
    monkeypatch.setattr(run, "BY_NAME", {s.name: s for s in made})
    assert run.run_sessions(nox, [s.name for s in made], at_once=at_once) == ["fails", "after", "later"]
    said = capfd.readouterr().out
    assert said.index("--- sleeps: passed") < said.index("--- writes: passed")
    assert "--- after: NOT RUN, it needs fails" in said
    assert "--- later: NOT RUN, it needs after" in said


@pytest.mark.parametrize(("at_once", "workers"), [(1, "None"), (2, "1")])
def test_sessions_that_run_at_once_have_one_process_of_tests_each(nox, monkeypatch, capfd, at_once, workers):
    made = [session("says"), session("writes")]
    monkeypatch.setattr(run, "BY_NAME", {s.name: s for s in made})
    monkeypatch.delenv(run.WORKERS, raising=False)
    assert not run.run_sessions(nox, ["says", "writes"], at_once=at_once)
    said = capfd.readouterr().out
    assert f"says: {workers}" in said
    assert f"writes: {workers}" in said


def test_files_of_tests_are_in_memory_where_there_is_enough_and_go_with_the_session(
    nox, monkeypatch, capfd, tmp_path
):
    monkeypatch.setattr(run, "memory_disk", lambda: tmp_path)
    assert run.run_session(nox, "files", kept=True)
    made = next(line.split()[1] for line in capfd.readouterr().out.splitlines() if line.startswith("made "))
    assert made.startswith(f"{tmp_path}/hudi-tests-")
    assert not list(tmp_path.glob("hudi-tests-*"))


@pytest.mark.parametrize(
    ("kept", "enough"), [(True, False), (False, True)], ids=["too little", "one session alone"]
)
def test_else_they_are_where_they_always_are(nox, monkeypatch, capfd, tmp_path, kept, enough):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(run, "memory_disk", lambda: tmp_path / "memory" if enough else None)
    assert run.run_session(nox, "files", kept=kept)
    made = next(line.split()[1] for line in capfd.readouterr().out.splitlines() if line.startswith("made "))
    assert os.path.dirname(made) == str(tmp_path)
    assert os.path.exists(made)


def test_a_disk_in_memory_is_taken_only_with_room_on_it_and_memory_for_others(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "MEMORY_DISK", tmp_path)
    monkeypatch.setattr(run, "MEMORY_DISK_BYTES", 1)
    monkeypatch.setattr(run, "MEMORY_BYTES", 1)
    assert run.memory_disk() == tmp_path
    monkeypatch.setattr(run, "MEMORY_BYTES", 1 << 60)
    assert run.memory_disk() is None
    monkeypatch.setattr(run, "MEMORY_BYTES", 1)
    monkeypatch.setattr(run, "MEMORY_DISK_BYTES", 1 << 60)
    assert run.memory_disk() is None
    monkeypatch.setattr(run, "MEMORY_DISK", tmp_path / "none")
    assert run.memory_disk() is None
