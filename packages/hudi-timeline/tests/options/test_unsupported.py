"""Options that are taken without effect: said once."""

import logging

from hudi_timeline.options import (
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
