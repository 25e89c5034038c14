"""Commands about record keys, from a shell."""

import json

import pytest
from duplicated_tables import duplicated


@pytest.mark.req("NEW-08", "NEW-18", "NEW-19", "NEW-28")
def test_keys_are_resolved_told_and_forgotten_from_a_shell(hudi, tmp_path):
    path = str(tmp_path / "t")
    duplicated(path, "mor")
    code, out, _ = hudi("duplicates", path, "-o", "json")
    rows = json.loads(out)
    assert (code, {r["key"] for r in rows}) == (1, {"a", "b"})
    code, out, _ = hudi("duplicates", path, "--partition", "y", "-o", "json")
    assert (code, json.loads(out)) == (0, [])
    assert len(json.loads(hudi("duplicates", path, "--across-partitions", "-n", "2", "-o", "json")[1])) == 2
    plan = json.loads(hudi("deduplicate", path, "--plan", "-o", "json")[1])  # which changes nothing
    assert sorted((r["key"], r["action"]) for r in plan) == [
        ("a", "kept"), ("a", "removed"), ("a", "removed"), ("b", "kept"), ("b", "removed"),
    ]  # fmt: skip
    facts = json.loads(hudi("repair", "deduplicate", path, "--partition", "x", "--dry-run", "-o", "json")[1])
    assert (facts["keys"], facts["rows"], facts["instant"]) == (2, 3, "")
    facts = json.loads(hudi("deduplicate", path, "--across-partitions", "-o", "json")[1])
    assert (facts["keys"], facts["rows"], len(facts["instant"])) == (3, 4, 17)
    assert hudi("duplicates", path)[0] == 0
    code, out, error = hudi("key-history", path, "d", "-o", "json")
    assert [(c["change"], (c["after"] or {}).get("v")) for c in json.loads(out)] == [("i", "d1"), ("u", "d2")]
    assert (code, error) == (0, "complete from 000 on\n")
    code, out, error = hudi("forget", path, "e", "-o", "json")
    assert (code, {t["key"] for t in json.loads(out)}) == (1, {"e"})
    assert "next: delete(get(['e'])" in error
    code, out, error = hudi("forget", path, "e", "--execute", "-o", "json")
    assert (code, json.loads(out)) == (0, [])
    assert "files holds the keys" in error
    code, _, error = hudi("deduplicate", path, "--partition", "nowhere")
    assert (code, "no files" in error) == (1, True)
