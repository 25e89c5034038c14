"""Options that are taken without effect: said once."""

import logging

from hudi_timeline.options import (
    parse_read_options,
    parse_write_options,
    unsupported,
)


def test_options_without_effect_are_listed_once_per_process(caplog, monkeypatch):
    monkeypatch.setattr(unsupported, "_said", set())
    options = {"hoodie.cleaner.parallelism": "200", "hoodie.embed.timeline.server": "true"}
    with caplog.at_level(logging.INFO, "hudi"):
        parse_write_options({**options, "hoodie.table.name": "t"})
        parse_write_options({**options, "hoodie.write.markers.type": "DIRECT"})
    assert [r.getMessage() for r in caplog.records] == [
        "options accepted without effect here: hoodie.cleaner.parallelism, hoodie.embed.timeline.server",
        "options accepted without effect here: hoodie.write.markers.type",
    ]


def test_a_metadata_table_that_is_asked_for_is_warned_of_once(caplog, monkeypatch):
    monkeypatch.setattr(unsupported, "_said", set())
    with caplog.at_level(logging.WARNING, "hudi"):
        assert parse_write_options({"hoodie.metadata.enable": "false"}).transaction.metadata_enable is False
        assert not caplog.records
        assert parse_write_options({"hoodie.metadata.enable": "true"}).transaction.metadata_enable is True
        parse_read_options({"hoodie.metadata.enable": "true"})
    assert len(caplog.records) == 1
