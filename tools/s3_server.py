"""A real S3 server on this machine for tests: moto's, in a process of its own that ends with its parent.

`python tools/s3_server.py` prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any

REGION = "us-east-1"
LONGEST_S = 300  # for the server to start, or to answer
KEY, SECRET = "AKIATESTTESTTEST", "s3cr3t-of-the-tests"


class S3Server:
    """The server as its tests see it."""

    def __init__(self) -> None:
        _reach_this_machine_directly()
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], LONGEST_S)
        line = self._process.stdout.readline().strip() if ready else ""
        if not line.isdigit():
            self._process.kill()
            raise RuntimeError("moto's S3 server did not start; is moto[server,s3] installed?")
        self.port = int(line)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, Any]:
        """What s3fs takes."""
        return {
            "key": KEY,
            "secret": SECRET,
            "client_kwargs": {"endpoint_url": self.url, "region_name": REGION},
        }

    @property
    def hadoop_options(self) -> dict[str, str]:
        """The same as Hadoop names it."""
        return {
            "fs.s3a.access.key": KEY,
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.endpoint": f"127.0.0.1:{self.port}",
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.path.style.access": "true",
        }

    @cached_property
    def client(self) -> Any:
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
        )

    def new_bucket(self) -> str:
        name = f"b-{uuid.uuid4().hex}"
        self.client.create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        """The names of all objects."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [o["Key"] for page in pages for o in page.get("Contents", ())]

    def check_credentials(self, on: bool) -> None:
        """Refuse every request from now on whose credentials the server does not know: it knows none."""
        request = urllib.request.Request(
            f"{self.url}/moto-api/reset-auth",
            data=b"0" if on else b"1000000000",
            headers={"Content-Type": "text/plain"},
            method="POST",
        )
        urllib.request.urlopen(request, timeout=LONGEST_S).read()

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # it keeps nothing that could be lost
            self._process.kill()
            self._process.wait(timeout=30)


def _alone(call: Callable[..., Any], lock: threading.Lock) -> Callable[..., Any]:
    @wraps(call)
    def alone(*arguments: Any, **more: Any) -> Any:
        with lock:
            return call(*arguments, **more)

    return alone


def _reach_this_machine_directly() -> None:
    """Where the environment names a proxy, requests to this machine do not go to it."""
    for name in ("no_proxy", "NO_PROXY"):
        known = [n for n in os.environ.get(name, "").split(",") if n]
        os.environ[name] = ",".join(dict.fromkeys([*known, "127.0.0.1", "localhost"]))


def main() -> None:
    from moto.dynamodb.responses import DynamoHandler
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    # S3 makes an object that is not to be there yet in one step.  moto looks first and makes it then, so of two
    # requests at a time both may win.
    put, one_at_a_time = S3Response.put_object, threading.Lock()

    def put_object(self: S3Response) -> Any:
        with one_at_a_time:
            return put(self)

    S3Response.put_object = put_object
    # DynamoDB's conditional writes likewise.
    for name in ("put_item", "update_item", "delete_item"):
        setattr(DynamoHandler, name, _alone(getattr(DynamoHandler, name), one_at_a_time))
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    # The parent holds the other end: it closes it, or dies.
    waiter = threading.Thread(target=sys.stdin.read)
    waiter.start()
    waiter.join()
    server.stop()


if __name__ == "__main__":
    main()
