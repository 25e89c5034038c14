"""Places of tables: paths, URLs of files and of stores, and what is none."""

from __future__ import annotations

import pytest

from hudi_format.errors import OptionError, UnsupportedError
from hudi_format.storage.open import normalised_path, open_storage
from hudi_format.storage.remote import FsspecStorage


@pytest.mark.parametrize(
    "name", ["a#b", "a?b", "a;b&c=d", "a\tb", "a\nb", "100%", "50%25", "a+b", "ü", " ", "[x]"]
)
def test_a_url_of_files_means_all_of_its_path(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    for uri in (f"file://{folder}", f"file:{folder}", f"FILE://localhost{folder}/", folder.as_uri(), folder):
        assert open_storage(uri).uri == str(folder), uri
    assert normalised_path(f"file:{folder}/x/*%2A") == f"{folder}/x/*{'%2A' if '%25' in name else '*'}"


def test_a_url_of_files_is_decoded_unless_only_the_other_name_is_there(tmp_path):
    uri = f"file://{tmp_path}/a%20b"
    assert open_storage(uri).uri == f"{tmp_path}/a b"
    (tmp_path / "a%20b").mkdir()
    assert open_storage(uri).uri == f"{tmp_path}/a%20b"
    (tmp_path / "a b").mkdir()
    assert open_storage(uri).uri == f"{tmp_path}/a b"


@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        ("s3:/b/t", "s3://, the bucket"),
        ("s3a:b/t", "s3a://, the bucket"),
        ("hdfs:/t", "hdfs://, the name node"),
        ("memory:t", "memory://"),
        ("s3://", "s3://bucket/path"),
        ("file://tmp/t", "three slashes"),
        ("dbfs:/t", "write dbfs://t for the store, or ./dbfs:/t"),
        ("alluxio:/a/b", "write alluxio://a/b for the store"),
    ],
)
def test_a_url_without_its_slashes_is_refused(uri, remedy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsupportedError) as e:
        open_storage(uri)
    assert remedy in e.value.remedy


@pytest.mark.parametrize("uri", ["/t/a\0b", "a\0b", "file:///a\0b", "s3://b/a\0b"])
def test_a_nul_character_is_refused_before_a_file_system_sees_it(uri):
    with pytest.raises(UnsupportedError, match="NUL") as e:
        open_storage(uri)
    assert "remove it" in e.value.remedy
    assert "\0" not in str(e.value)


@pytest.mark.parametrize("uri", ["", "  ", "\n"])
@pytest.mark.parametrize("take", [open_storage, normalised_path])
def test_an_empty_path_is_not_the_current_folder(take, uri):
    with pytest.raises(OptionError, match="empty") as e:
        take(uri)
    assert "'.'" in e.value.remedy


def test_a_name_with_a_colon_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_storage("day:1/t").uri == f"{tmp_path}/day:1/t"
    assert open_storage("./dbfs:/t").uri == f"{tmp_path}/dbfs:/t"
    assert open_storage(".").uri == str(tmp_path)
    assert isinstance(open_storage(f"simplecache::file://{tmp_path}"), FsspecStorage)


def test_the_root_of_a_store_is_no_local_folder():
    assert open_storage("memory://").uri == "memory://"
    assert not open_storage("memory://").is_local
    open_storage("memory://of the root").create("f", b"1")
    try:
        assert open_storage("memory://").read("of the root/f") == b"1"
    finally:
        open_storage("memory://of the root").delete_dir("")


@pytest.mark.parametrize("uri", [None, b"/tmp"])
def test_what_is_no_place_is_refused(uri):
    with pytest.raises(TypeError, match="must be a path or URL"):
        open_storage(uri)


def test_a_scheme_that_nobody_knows_is_refused():
    with pytest.raises(UnsupportedError, match="nosuch://"):
        open_storage("nosuch://b/t")
