"""Listings as table, JSON and CSV."""

import csv
import io
import json

import pytest


@pytest.mark.parametrize("command", ["timeline", "commits", "partitions", "files", "schema", "head"])
def test_every_listing_comes_as_table_json_and_csv(hudi, path, command):
    code, text, _ = hudi(command, path)
    assert code == 0
    rows = json.loads(hudi(command, path, "-o", "json")[1])
    table = list(csv.DictReader(io.StringIO(hudi(command, path, "--output", "csv")[1])))
    assert len(rows) == len(table) > 0
    assert set(table[0]) <= set(rows[0])
    for name in table[0]:
        assert name in text or command == "commits"  # of which a terminal has those that fit
