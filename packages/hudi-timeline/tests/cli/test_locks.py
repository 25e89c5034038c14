"""The table's lock from a shell."""

import json
from pathlib import Path

import pytest

OPTION = ("--option", "hoodie.write.lock.provider=FileSystemBasedLockProvider")
LEFT_OVER = {
    "lockCreateTime": "2024-01-02 03:04:05.678",
    "lockThreadName": "main",
    "lockStacksInfo": [],
}


@pytest.mark.req("NEW-35")
def test_a_lock_is_shown_and_broken(hudi, path):
    def ran(*arguments):
        code, out, error = hudi("lock", *arguments, path, *OPTION, "-o", "json")
        assert code == 0, error
        return json.loads(out)

    assert ran("show")["held"] is False
    lock = Path(path, ".hoodie/lock")
    lock.write_text(json.dumps(LEFT_OVER))
    shown = ran("show")
    assert (shown["held"], shown["holder"], shown["alive"]) == (True, "main", "unknown")
    assert shown["since"].startswith("2024-01-0")
    assert shown["age_in_seconds"] > 10**6
    code, _, error = hudi("lock", "break", path, *OPTION)
    assert (code, "--force" in error) == (1, True)
    assert lock.exists()
    assert ran("break", "--force")["holder"] == "main"
    assert not lock.exists()


@pytest.mark.req("NEW-35")
def test_a_lock_of_a_provider_that_cannot_be_is_an_error_in_one_line(hudi, path):
    code, _, error = hudi(
        "lock", "show", path, "--option", "hoodie.write.lock.provider=ZookeeperBasedLockProvider"
    )
    assert (code, "hoodie.write.lock.zookeeper.url" in error, error.count("\n")) == (1, True, 1)
