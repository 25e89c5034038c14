"""The reference of options, made of their declarations."""

from __future__ import annotations

import re

from hudi_timeline.options import registry
from hudi_timeline.options.config_key import ConfigKey

_HEADS = {
    "table_options": "Tables",
    "write_options": "Writes",
    "file_options": "Files",
    "transaction_options": "Transactions, locks and several writers",
    "service_options": "Table services",
    "read_options": "Reads",
}


def text_of(value: str) -> str:
    """A text for the cell of a table."""
    return re.sub(r"\s+", " ", value).strip().replace("|", "\\|").replace("<", "&lt;")


def code(value: str) -> str:
    """A text as code in the cell of a table; nothing for nothing."""
    return f"`{value}`".replace("|", "\\|") if value.strip() else ""


def _declared() -> list[tuple[str, list[ConfigKey]]]:
    """Options with an effect, by their subject."""
    taken: set[str] = set()
    found = []
    for module in registry.DECLARED:
        keys = [k for k in vars(module).values() if isinstance(k, ConfigKey) and str(k) not in taken]
        own = [k for k in keys if k.doc]
        taken |= {str(k) for k in own}
        found.append((_HEADS[module.__name__.rpartition(".")[2]], sorted(set(own))))
    return found


def _option(key: ConfigKey) -> str:
    default = "`''`" if key.default == "" else code(key.default or "") or "none"
    since = key.since and (f"Apache Hudi {key.since}" if not key.startswith("hudi.") else key.since)
    lines = [
        f"### `{key}` {{ #{key} }}",
        text_of(key.doc),
        f"- takes {text_of(key.type.allowed)}\n- default: {default}"
        + (f"\n- since: {since}" if since else "")
        + (f"\n- other names: {', '.join(code(a) for a in key.alternatives)}" if key.alternatives else ""),
    ]
    if key.unsupported is not None:
        scopes = " and ".join(f"a {s}" for s in sorted(key.unsupported.scopes))
        refused = f"{text_of(key.unsupported.what)}. Instead: {text_of(key.unsupported.way_round)}."
        lines.append(f'!!! warning "Refused in {scopes}"\n    {refused}')
    return "\n\n".join(lines)


def reference() -> str:
    """The page of options that have an effect here."""
    parts = [
        "# Options",
        "Every option that has an effect here, from its declaration in the code. Options are given with a call "
        "(`options={...}`, or `.option(...)` on Spark), and `hoodie.*` settings of a Spark session count "
        "below those. "
        "Names and values are checked before anything is read or written: a name that no release of "
        "Apache Hudi knows is an "
        "[`UnknownOptionError`](../errors/HUDI-E0301.md) with the nearest name. `hudi config explain "
        "NAME` says the same on the "
        "command line. See also [what is refused](options-refused.md) and [what has no "
        "effect](options-without-effect.md).",
    ]
    for head, keys in _declared():
        parts.append(f"## {head}")
        parts += [_option(key) for key in keys]
    return "\n\n".join(parts) + "\n"


def refused() -> str:
    """The page of options that only ask for what is not provided."""
    shown = {str(k) for _, keys in _declared() for k in keys}
    rows = []
    for name, key in sorted(registry.declared_options().items()):
        of = key.unsupported
        if name in shown or of is None:
            continue
        rows.append(f"| `{key}` | {text_of(of.what)} | {text_of(of.way_round)} |")
    return "\n".join(
        [
            "# Options that are refused",
            "",
            "These options of Apache Hudi ask for what this version does not do. A call that gives one, "
            "with a value that asks for "
            "it, ends in an [`UnsupportedError`](../errors/HUDI-E0201.md) before anything is written; a "
            "value that only says "
            "what is so anyway is taken.",
            "",
            "| option | asks for | instead |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def without_effect() -> str:
    """The page of options of Apache Hudi that are taken and change nothing."""
    groups: dict[str, list[ConfigKey]] = {}
    for key in registry.known_options().values():
        if not key.doc and key.unsupported is None:
            groups.setdefault(key.group or "Other", []).append(key)
    parts = [
        "# Options without effect",
        "Options of Apache Hudi that are known here and change nothing, because they tune parts that "
        "this project does not have (a "
        "JVM's caches, a timeline server, ...). They are taken, so that scripts need no change; a slip "
        "in a name is told.",
    ]
    for group, keys in groups.items():
        parts += [f"## {group}", "\n".join(f"- {code(k)}" for k in sorted(keys))]
    return "\n\n".join(parts) + "\n"
