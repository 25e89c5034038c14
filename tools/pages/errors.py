"""A page for each error code: the class, what to do about it, and the messages that the code has for it."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hudi_format import HudiError, errors
from pages.links import PACKAGES, ROOT

ADVICE = Path(__file__).with_name("advice.toml")


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A place in the code that raises an error.

    Attributes:
        package: of the place.
        text: what it says, with `…` for what is known only then.
        remedy: what it advises, "" for nothing of its own.
    """

    package: str
    text: str
    remedy: str


def classes() -> list[type[HudiError]]:
    """Errors by code."""
    found = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, HudiError)]
    return sorted(found, key=lambda c: c.code)


def advice() -> dict[str, str]:
    """What to do about each code."""
    return tomllib.loads(ADVICE.read_text(encoding="utf-8"))


def page_of(error: type[HudiError]) -> str:
    """Path of an error's page in the site."""
    return f"errors/{error.code}.md"


def messages(root: Path = ROOT) -> dict[str, list[Message]]:
    """What the packages say with each class of error, from their source."""
    names = {c.__name__ for c in classes()}
    found: dict[str, set[Message]] = {name: set() for name in names}
    for package in PACKAGES:
        for path in sorted((root / "packages" / package / "src").rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and (name := _name(node.func)) in names and node.args:
                    text = _text(node.args[0])
                    remedy = next((_text(k.value) for k in node.keywords if k.arg == "remedy"), "")
                    if text.strip("… "):
                        found[name].add(Message(package, text, remedy.strip("… ") and remedy))
    return {name: sorted(texts) for name, texts in found.items()}


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _text(node: ast.expr) -> str:
    """A text in the code; `…` for what is not known before it runs."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "…"


def _inherits(error: type[HudiError]) -> Iterator[type]:
    for base in error.__mro__[1:]:
        if base is not object and base not in (Exception, BaseException):
            yield base


def _link(error: type, here: str) -> str:
    if not issubclass(error, HudiError):
        return f"`{error.__name__}`"
    return f"[`{error.__name__}`]({here}{error.code}.md)"


def _page(error: type[HudiError], said: list[Message], to_do: str) -> str:
    doc = inspect.cleandoc(error.__doc__ or "")
    parts = [
        f"# {error.code}: {error.__name__}",
        doc.replace("Attributes:\n", "Attributes:\n\n").replace("\n    ", "\n- "),
        "## What to do",
        to_do.strip(),
        "## How it is caught",
        f"```python\nfrom hudi_timeline import {error.__name__}\n```",
        f"It is a {', a '.join(_link(b, '') for b in _inherits(error))}."
        if error is not HudiError
        else "All errors that this project raises on purpose are of this class.",
        "`code`, `message`, `remedy`, `table`, `instant`, `file` and `details` are its parts. The "
        "command `hudi` prints one line and "
        "ends with exit code 1.",
    ]
    below = [c for c in classes() if c is not error and error in c.__mro__]
    if below and error is not HudiError:
        parts.append(f"Also caught with it: {', '.join(_link(c, '') for c in below)}.")
    if said:
        parts += ["## What it says", "`…` stands for what is known only when it happens."]
        for package in PACKAGES:
            lines = [_said(m) for m in said if m.package == package]
            if lines:
                parts += [f"**{package}**", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _said(message: Message) -> str:
    line = f"- {_plain(message.text)}"
    return line + (f"\n\n    *{_plain(message.remedy)}*\n" if message.remedy else "")


def _plain(text: str) -> str:
    """A message as text of Markdown."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)


def pages(root: Path = ROOT) -> dict[str, str]:
    """Pages of all errors, and their list."""
    said, to_do = messages(root), advice()
    found = {page_of(c): _page(c, said[c.__name__], to_do[c.code]) for c in classes()}
    rows = []
    for c in classes():
        first = inspect.cleandoc(c.__doc__ or "").partition("\n")[0]
        rows.append(f"| [{c.code}]({c.code}.md) | `{c.__name__}` | {first} |")
    found["errors/index.md"] = "\n".join(
        [
            "# Errors",
            "",
            "Every error that this project raises on purpose has a class and a code that stays. Its text "
            "is one line: the code, what "
            "happened, where, and what to do. They are the same without a JVM, on Spark and on the "
            "command line, where the exit code is 1.",
            "",
            "| code | class | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
    return found
