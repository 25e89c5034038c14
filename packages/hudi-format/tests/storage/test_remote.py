"""Which store a URL means, Hadoop's options of it, and what its failures become."""

from __future__ import annotations

import http.server
import threading
from functools import partial

import pytest

from hudi_format.errors import OptionError, StorageError
from hudi_format.storage.open import open_storage


def test_a_storage_option_that_the_package_does_not_take_is_told_once():
    with pytest.raises(OptionError, match="no storage option 'endpoint'") as e:
        open_storage("s3://b/t", {"endpoint": "http://127.0.0.1:1"})
    assert str(e.value).count("HUDI-E") == 1
    assert e.value.remedy == "did you mean 'endpoint_url'?"


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


def test_sizes_that_a_listing_does_not_tell_are_asked_for_or_it_is_refused(web):
    pytest.importorskip("aiohttp")
    storage, tells = web
    if not tells:
        for call in (lambda: storage.list("d"), lambda: storage.open_input("d/a.txt")):
            with pytest.raises(StorageError, match="does not report file sizes") as e:
                call()
            assert e.value.table == storage.uri
            assert e.value.remedy
        return
    assert {e.name: e.size for e in storage.list("d")} == {"a.txt": 5, ".b.log.1": 7, "empty": 0}
    assert storage.info("d/a.txt").size == 5
    assert storage.open_input("d/.b.log.1").read() == b"1234567"
