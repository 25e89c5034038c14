"""Clock of a store: what it says to a process whose own clock is wrong, and how often it is asked."""

import os
import time

import pytest

from hudi_format.errors import StorageError
from hudi_timeline.concurrency import store_clock
from hudi_timeline.concurrency.store_clock import store_seconds

FOLDER = ".hoodie"


@pytest.fixture(autouse=True)
def nothing_known():
    store_clock._known.clear()


@pytest.mark.parametrize("ahead_s", [-600, 0, 600, 86_400])
def test_it_is_the_stores_time_whatever_ours_is(storage, ahead_s):
    before = time.time()
    found = store_seconds(storage, FOLDER, now=lambda: time.time() + ahead_s)
    # File systems keep time in ticks of some milliseconds.
    assert before - 0.1 <= found <= time.time()
    assert not [f.name for f in storage.list(FOLDER) if "clock" in f.name]


def test_a_store_is_asked_once_and_again_where_our_clock_was_set(storage, monkeypatch):
    asked, create = [], type(storage).create

    def counted(self, path, data):
        asked.append(path)
        create(self, path, data)

    monkeypatch.setattr(type(storage), "create", counted)
    ahead_s = [0]
    for _ in range(3):
        store_seconds(storage, FOLDER, now=lambda: time.time() + ahead_s[0])
    assert len(asked) == 1
    ahead_s[0] = 3600
    assert store_seconds(storage, FOLDER, now=lambda: time.time() + ahead_s[0]) <= time.time()
    assert len(asked) == 2


def test_a_store_that_does_not_show_its_files_says_no_time(storage, monkeypatch):
    monkeypatch.setattr(type(storage), "info", lambda self, path: None)
    with pytest.raises(StorageError, match="not seen") as e:
        store_seconds(storage, FOLDER)
    assert e.value.remedy
    assert not [n for n in os.listdir(f"{storage.uri}/{FOLDER}") if "clock" in n]
