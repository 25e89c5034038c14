"""Which instants are archived, of random timelines under random options: those that Apache Hudi 0.15.0 takes."""

import pytest

from interop.timelines import TimelineFiles, compare


@pytest.mark.req("TS-31", "TM-20")
@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, 300), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_we_archive_what_apache_hudi_archives(apache, tmp_path, seeds):
    found = [compare(seed, apache, tmp_path) for seed in seeds]
    assert not [text for text, _ in found if text]
    assert sum(bool(count) for _, count in found) > len(seeds) / 4


def test_a_seed_is_the_same_timeline_each_time():
    one, again = TimelineFiles(3), TimelineFiles(3)
    assert (sorted(one.files), one.options) == (sorted(again.files), again.options)
