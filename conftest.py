"""Settings and servers that all tests share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from s3_server import S3Server
from sampling import mark_chosen, refuse_left_out

# Timings of a shared machine say nothing about the code.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples in each run: a change is judged by what it changes.  `--hypothesis-profile=random` draws others.
EXAMPLES = (
    100 if os.environ.get("HUDI_SOAK") else 40
)  # of a test that says no number: the session `soak` tries all
settings.register_profile("hudi", settings.get_profile("random"), derandomize=True, max_examples=EXAMPLES)
settings.load_profile("hudi")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_chosen(items)


def pytest_deselected(items: list[pytest.Item]) -> None:
    refuse_left_out(items)


def pytest_collection_finish() -> None:
    """No collection of garbage goes through the libraries and the tests, which stay until the end."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # libraries that count what is left at the end find nothing


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server, started once; each test makes its own bucket."""
    server = S3Server()
    yield server
    server.stop()
