"""Which store a URL means, Hadoop's options of it, and what its failures become."""

from __future__ import annotations

import errno
import http.server
import importlib.util
import threading
from functools import partial

import pytest

from hudi_format.errors import OptionError, StorageError, UnsupportedError
from hudi_format.storage.errors import refusals
from hudi_format.storage.hadoop_options import hadoop_options, storage_options_of, without_hadoop_options
from hudi_format.storage.open import FsspecStorage, normalised_path, open_storage
from hudi_format.storage.schemes import normalised, root_of, scheme_of


@pytest.mark.req("SS-05")
@pytest.mark.parametrize(
    ("uri", "normal", "root"),
    [
        ("s3a://b/t/", "s3://b/t", "b"),
        ("s3n://b/t", "s3://b/t", "b"),
        ("gcs://b/a%20b", "gs://b/a%20b", "b"),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfs://c@acc.dfs.core.windows.net/t", "c"),
        ("wasbs://c@acc.blob.core.windows.net/t", "abfs://c@acc.blob.core.windows.net/t", "c"),
        ("hdfs://nn:8020/t", "hdfs://nn:8020/t", "nn:8020"),
        ("sftp://me:secret@host/t", "sftp://me:secret@host/t", "host"),
        ("memory://x", "memory://x", "x"),
    ],
)
def test_schemes(uri, normal, root):
    assert normalised(uri) == normal
    assert root_of(uri) == root
    assert normalised_path(uri) == normal


@pytest.mark.req("SS-03", "SS-04")
@pytest.mark.parametrize(
    ("uri", "package"),
    [("gs://b/t", "gcsfs"), ("abfss://c@a.dfs.core.windows.net/t", "adlfs"), ("sftp://h/t", "paramiko")],
)
def test_a_missing_package_is_named(uri, package):
    if importlib.util.find_spec(package) is not None:
        assert scheme_of(uri).package == package
        return
    with pytest.raises(UnsupportedError) as e:
        open_storage(uri)
    assert f"pip install {package}" in e.value.remedy
    assert "\n" not in str(e.value)


@pytest.mark.req("SS-05")
@pytest.mark.parametrize(
    "name", ["a#b", "a?b", "a;b&c=d", "a\tb", "a\nb", "100%", "50%25", "a+b", "ü", " ", "[x]"]
)
def test_a_url_of_files_means_all_of_its_path(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    for uri in (f"file://{folder}", f"file:{folder}", f"FILE://localhost{folder}/", folder.as_uri(), folder):
        assert open_storage(uri).uri == str(folder), uri
    assert normalised_path(f"file:{folder}/x/*%2A") == f"{folder}/x/*{'%2A' if '%25' in name else '*'}"


@pytest.mark.req("SS-05")
def test_a_url_of_files_is_decoded_unless_only_the_other_name_is_there(tmp_path):
    uri = f"file://{tmp_path}/a%20b"
    assert open_storage(uri).uri == f"{tmp_path}/a b"
    (tmp_path / "a%20b").mkdir()
    assert open_storage(uri).uri == f"{tmp_path}/a%20b"
    (tmp_path / "a b").mkdir()
    assert open_storage(uri).uri == f"{tmp_path}/a b"


@pytest.mark.req("SS-05")
@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        ("s3:/b/t", "s3://, the bucket"),
        ("s3a:b/t", "s3a://, the bucket"),
        ("hdfs:/t", "hdfs://, the name node"),
        ("memory:t", "memory://"),
        ("s3://", "s3://bucket/path"),
        ("file://tmp/t", "three slashes"),
    ],
)
def test_a_url_without_its_slashes_is_refused(uri, remedy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsupportedError) as e:
        open_storage(uri)
    assert remedy in e.value.remedy


@pytest.mark.req("SS-05")
def test_a_name_with_a_colon_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_storage("day:1/t").uri == f"{tmp_path}/day:1/t"
    assert isinstance(open_storage(f"simplecache::file://{tmp_path}"), FsspecStorage)


def test_the_root_of_a_store_is_no_local_folder():
    assert open_storage("memory://").uri == "memory://"
    assert not open_storage("memory://").is_local
    open_storage("memory://of the root").create("f", b"1")
    try:
        assert open_storage("memory://").read("of the root/f") == b"1"
    finally:
        open_storage("memory://of the root").delete_dir("")


def test_a_storage_option_that_the_package_does_not_take_is_told_once():
    with pytest.raises(OptionError, match="no storage option 'endpoint'") as e:
        open_storage("s3://b/t", {"endpoint": "http://127.0.0.1:1"})
    assert str(e.value).count("HUDI-E") == 1
    assert e.value.remedy == "did you mean 'endpoint_url'?"


@pytest.mark.parametrize("uri", [None, b"/tmp"])
def test_what_is_no_place_is_refused(uri):
    with pytest.raises(TypeError, match="must be a path or URL"):
        open_storage(uri)


def test_a_scheme_that_nobody_knows_is_refused():
    with pytest.raises(UnsupportedError, match="nosuch://"):
        open_storage("nosuch://b/t")


def test_hadoops_options_of_s3():
    given = {
        "hoodie.table.name": "t",
        "spark.hadoop.fs.s3a.access.key": "session",
        "fs.s3a.access.key": "own",
        "fs.s3a.secret.key": "s",
        "fs.s3a.session.token": "tok",
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.endpoint.region": "eu-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.server-side-encryption-algorithm": "SSE-KMS",
        "fs.s3a.server-side-encryption.key": "arn",
        "fs.s3a.proxy.host": "proxy",
        "fs.s3a.proxy.port": "3128",
        "fs.s3a.bucket.other.endpoint": "elsewhere",
        "fs.s3a.threads.max": "64",
    }
    assert storage_options_of("s3a://b/t", given) == {
        "key": "own",
        "secret": "s",
        "token": "tok",
        "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn"},
        "client_kwargs": {"endpoint_url": "https://minio:9000", "region_name": "eu-1"},
        "config_kwargs": {
            "s3": {"addressing_style": "path"},
            "proxies": {"http": "http://proxy:3128", "https": "http://proxy:3128"},
        },
    }
    plain = {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}
    assert storage_options_of("s3://b/t", plain) == {
        "use_ssl": False,
        "client_kwargs": {"endpoint_url": "http://minio:9000"},
    }
    anonymous = {
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    }
    assert storage_options_of("s3://b/t", anonymous) == {"anon": True}
    assert storage_options_of(
        "s3n://b/t", {"fs.s3n.awsAccessKeyId": "k", "fs.s3n.awsSecretAccessKey": "s"}
    ) == {
        "key": "k",
        "secret": "s",
    }
    assert storage_options_of("gs://b/t", given) == {}
    assert set(hadoop_options(given)).isdisjoint(without_hadoop_options(given))
    assert without_hadoop_options(given) == {"hoodie.table.name": "t"}


def test_hadoops_options_of_azure_and_google():
    host = "acc.dfs.core.windows.net"
    given = {
        f"fs.azure.account.key.{host}": "k",
        "fs.azure.account.key.other.dfs.core.windows.net": "no",
        "fs.azure.account.oauth2.client.id": "id",
        f"fs.azure.account.oauth2.client.secret.{host}": "s",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
    }
    assert storage_options_of(f"abfss://c@{host}/t", given) == {
        "account_name": "acc",
        "account_key": "k",
        "client_id": "id",
        "client_secret": "s",
        "tenant_id": "tenant",
    }
    google = {"fs.gs.auth.service.account.json.keyfile": "/key.json", "fs.gs.project.id": "p"}
    assert storage_options_of("gs://b/t", google) == {"token": "/key.json", "project": "p"}


class _Refused(OSError):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(errno.EIO, text)
        self.response = {"Error": {"Code": code}}


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize(
    ("error", "says", "remedy"),
    [
        (_Refused("NoSuchBucket", "x"), "no bucket 'b'", "make the bucket"),
        (_Refused("403", "x"), "access was denied", "fs.s3a.access.key"),
        (PermissionError("the signature topsecret is wrong"), r"signature \*\*\* is wrong", "credentials"),
        (OSError("Forbidden: b/t"), "access was denied", "credentials"),
        (TimeoutError("too long"), "cannot be reached", "network"),
        (OSError(errno.EIO, "first line\nsecond line"), "first line", "again"),
    ],
)
def test_refusals_are_one_line_with_a_remedy(error, says, remedy):
    with (
        pytest.raises(StorageError, match=says) as e,
        refusals("s3://b/t", "f", scheme_of("s3://b/t"), ["topsecret"]),
    ):
        raise error
    assert remedy in e.value.remedy
    assert e.value.file == "f"
    assert "\n" not in str(e.value)
    assert "topsecret" not in str(e.value)


def test_what_is_no_failure_of_the_store_stays_as_it_is():
    for error in (KeyError("x"), FileNotFoundError("f"), FileExistsError("f"), AssertionError("bug")):
        with pytest.raises(type(error)), refusals("s3://b/t", "f", scheme_of("s3://b/t")):
            raise error


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, with their lengths or without."""

    tells_lengths = True

    def log_message(self, *_: object) -> None:
        pass

    def send_header(self, name: str, value: str) -> None:
        if self.tells_lengths or name != "Content-Length":
            super().send_header(name, value)


@pytest.fixture(params=[True, False], ids=["lengths", "no_lengths"])
def web(request, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_bytes(b"12345")
    (tmp_path / "d" / ".b.log.1").write_bytes(b"1234567")
    (tmp_path / "d" / "empty").write_bytes(b"")
    handler = type("Handler", (_Handler,), {"tells_lengths": request.param})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield open_storage(f"http://127.0.0.1:{server.server_port}"), request.param
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.req("SS-01")
def test_sizes_that_a_listing_does_not_tell_are_asked_for_or_it_is_refused(web):
    pytest.importorskip("aiohttp")
    storage, tells = web
    if not tells:
        for call in (lambda: storage.list("d"), lambda: storage.open_input("d/a.txt")):
            with pytest.raises(StorageError, match="does not tell how long") as e:
                call()
            assert e.value.table == storage.uri
            assert e.value.remedy
        return
    assert {e.name: e.size for e in storage.list("d")} == {"a.txt": 5, ".b.log.1": 7, "empty": 0}
    assert storage.info("d/a.txt").size == 5
    assert storage.open_input("d/.b.log.1").read() == b"1234567"
