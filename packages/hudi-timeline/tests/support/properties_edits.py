"""Changes of hoodie.properties as another program makes them, which drops the comment with the content checksum."""

from __future__ import annotations

from pathlib import Path


def edit_properties(table: Path, old: str, new: str) -> None:
    """Put `new` in the place of `old`, or at the end where `old` is empty."""
    file = table / ".hoodie" / "hoodie.properties"
    text = file.read_text()
    assert old in text
    text = text.replace(old, new) if old else f"{text}\n{new}\n"
    file.write_text("".join(f"{line}\n" for line in text.splitlines() if not line.startswith("#")))
