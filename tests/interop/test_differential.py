"""Drawn tables under this project and Apache Hudi in turns (tools/soak/differential.py)."""

from contextlib import suppress

import pytest

from soak.differential import History, Stop
from soak.drawn_tables import Drawn


def drawn(seed):
    table = Drawn(str(seed))
    out = [table.options]
    for step in range(6):
        operation, rows, more = table.batch(step)
        out.append((operation, table.table(rows, step), more))
    return out


def test_a_seed_draws_the_same_table_and_batches_each_time():
    first = [drawn(seed) for seed in range(30)]
    # As text: not every NaN is another one's equal.
    assert [str(t) for t in first] == [str(drawn(seed)) for seed in range(30)]
    operations = {step[0] for table in first for step in table[1:]}
    assert operations >= {"insert", "upsert", "bulk_insert", "delete", "insert_overwrite", "delete_partition"}
    kinds = {option["hoodie.datasource.write.table.type"] for option, *_ in first}
    assert kinds == {"COPY_ON_WRITE", "MERGE_ON_READ"}
    assert {option["hoodie.index.type"] for option, *_ in first} > {"SIMPLE", "BLOOM", "BUCKET"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [48, 49])
def test_both_give_the_same_answers_after_each_step(apache, tmp_path, seed):
    history = History(seed, apache, tmp_path)
    with suppress(Stop):  # Apache Hudi refused a step of its own too, else there is a difference
        history.run()
    assert not history.found, "\n".join([*history.said, *(f"{d.what}: {d.message}" for d in history.found)])
    assert history.counts["steps"] > 0
