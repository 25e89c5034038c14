"""Options of reads and writes: Apache Hudi's names, parsed once, none ignored without a word."""

from hudi_format.lazy import at_first_use

__all__ = [
    "OptionFact",
    "ReadConfig",
    "WriteConfig",
    "check_against_table",
    "describe",
    "explain",
    "parse_read_options",
    "parse_write_options",
]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "OptionFact": "facts",
        "ReadConfig": "read",
        "WriteConfig": "write",
        "check_against_table": "against_table",
        "describe": "facts",
        "explain": "facts",
        "parse_read_options": "read",
        "parse_write_options": "write",
    },
)
