"""JSON of files that others wrote: every text in it can be written again."""

from __future__ import annotations

import json
import re
from typing import Any

# An escape for half of a pair of UTF-16.  JSON may have one without the other half, which no name of a column or
# file can.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def loads(text: str | bytes) -> Any:
    """The value that JSON text stands for; bytes are UTF-8.

    Raises:
        ValueError: no JSON, numbers of thousands of digits, or text with half of a character.
        RecursionError: nested too deeply.
    """
    if not isinstance(text, str):
        text = str(text, "utf-8")
    value = json.loads(text)
    if _HALF.search(text) or not text.isascii():
        json.dumps(value, ensure_ascii=False).encode()
    return value
