"""What a bug capsule keeps of the data: nothing, and no hash that tells two apart."""

import re
import zipfile

import pytest

from hudi_format.errors import OptionError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.bug_capsule import make_capsule, open_capsule
from hudi_timeline.bug_capsule.mask import BASE, Mask

pytestmark = pytest.mark.req("NEW-13")
SECRETS = ["Smith", "Miller", "Oslofjord", "Paris", "4815162342", "salary-note", "SALARY"]
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "name",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


def rebuilt(table, folder, **more):
    make_capsule(table.storage, folder / "bug.zip", **more)
    open_capsule(folder / "bug.zip", folder / "rebuilt")
    return HudiTable._of(LocalStorage(str(folder / "rebuilt")))


def test_no_value_leaves(table, tmp_path):
    capsule = make_capsule(
        table.storage, tmp_path / "bug.zip", options={"hoodie.datasource.query.type": "snapshot"}
    )
    assert capsule.files > 10
    with zipfile.ZipFile(tmp_path / "bug.zip") as archive:
        text = b"".join(n.encode() + archive.read(n) for n in archive.namelist())
    open_capsule(tmp_path / "bug.zip", tmp_path / "rebuilt")
    again = HudiTable.open(str(tmp_path / "rebuilt"))
    text += (
        str(again.read().to_arrow().to_pylist()).encode() + str(again.inspect.files().to_pylist()).encode()
    )
    for value in [*SECRETS, str(tmp_path)]:
        assert value.encode() not in text, value
    assert b"capsule:/table" not in text or str(tmp_path).encode() not in text
    assert b"hoodie.datasource.query.type" in text


def test_a_path_beside_the_table_is_none_in_it():
    mask = Mask(b"k" * 32, "/lake/trips")
    assert mask.path("/lake/trips") == mask.path("/lake/trips/") == BASE
    assert mask.path("/lake/trips/note").startswith(f"{BASE}/x")
    beside = mask.path("/lake/trips_source/note")
    assert not beside.startswith(BASE)
    assert not {"lake", "trips", "source", "note"} & set(re.findall("[a-z]+", beside))


def test_two_capsules_share_no_hash_unless_they_share_a_key(table, tmp_path):
    def names(name, key):
        make_capsule(table.storage, tmp_path / name, key=key)
        with zipfile.ZipFile(tmp_path / name) as archive:
            return {n.rpartition("/")[0] for n in archive.namelist() if "city=" in n}

    assert names("a", b"k" * 32) == names("b", b"k" * 32)
    assert names("c", None).isdisjoint(names("d", None))


@pytest.mark.parametrize(
    "options",
    [{"fs.s3a.secret.key": "hush"}, {"hoodie.x.password": "hush"}, {"hoodie.url": "jdbc://me:hush@host/db"}],
)
def test_secrets_in_options_are_refused_and_not_shown(table, tmp_path, options):
    with pytest.raises(OptionError) as e:
        make_capsule(table.storage, tmp_path / "bug.zip", options=options)
    assert "hush" not in str(e.value)
    assert not (tmp_path / "bug.zip").exists()
    make_capsule(table.storage, tmp_path / "bug.zip", options=OPTIONS)
