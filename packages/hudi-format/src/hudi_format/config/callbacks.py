"""Who is told of a completed commit: options of `hoodie.write.commit.callback.*`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlparse

from hudi_format.config.registry import Given, shown
from hudi_format.errors import InvalidOptionError, UnsupportedError

PREFIX = "hoodie.write.commit.callback."
ON, CLASS, URL = PREFIX + "on", PREFIX + "class", PREFIX + "http.url"
TIMEOUT, KEY, HEADERS = (
    PREFIX + "http.timeout.seconds",
    PREFIX + "http.api.key",
    PREFIX + "http.custom.headers",
)
HTTP = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"

DOCS = {
    ON: "After each commit somebody is told of it: by HTTP, or by a call of a Python function.",
    CLASS: "Apache Hudi's HoodieWriteCommitHttpCallback, or a Python function as module:function.",
    URL: "Address that each commit is posted to, as JSON.",
    TIMEOUT: "How long an answer is waited for.",
    KEY: "Value of the header HUDI-CALLBACK-KEY.",
    HEADERS: "Further headers, `name:value` with ; between them.",
}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True, slots=True)
class CallbackConfig:
    """One callback: a Python function, or an address.

    Attributes:
        function: `module:function`; "" where the commit is posted.
    """

    function: str = ""
    url: str = ""
    timeout_s: int = 30
    api_key: str = field(default="hudi_write_commit_http_callback", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def callback_config(given: Given) -> CallbackConfig | None:
    """The callback that options ask for, None where it is not switched on.

    Raises:
        UnsupportedError: a class that only a JVM can load.
        InvalidOptionError: no address to post to, or no such address or header.
    """
    if given.parsed.get(ON) is not True:
        return None
    named = str(given.parsed.get(CLASS) or HTTP)
    if ":" in named:
        return CallbackConfig(function=named)
    if named != HTTP:
        raise UnsupportedError(
            f"{CLASS}={named} asks for a commit callback that only a JVM can load",
            remedy=f"use {HTTP.rpartition('.')[2]}, or a Python function as module:function.",
            option=CLASS,
            value=named,
        )
    url = str(given.parsed.get(URL) or "").strip()
    address = urlparse(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InvalidOptionError(
            f"{ON}=true posts commits to {URL}, which is {url!r}",
            remedy="give an address that begins with http:// or https://.",
            option=URL,
        )
    timeout = given.parsed.get(TIMEOUT)
    key = given.parsed.get(KEY)
    return CallbackConfig(
        url=url,
        timeout_s=timeout if isinstance(timeout, int) else 30,
        api_key=CallbackConfig().api_key if key is None else str(key).strip(),
        headers=tuple(_header(h) for h in str(given.parsed.get(HEADERS) or "").split(";") if h.strip()),
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not value or not _NAME.match(name) or not value.isprintable():
        raise InvalidOptionError(
            f"{HEADERS} has {shown(HEADERS, name)!r}, which is no header with a value",
            remedy="write name:value, with ; between headers.",
            option=HEADERS,
        )
    return name, value
