"""Options of reads and writes: Apache Hudi's keys, parsed once, none silently ignored."""

from hudi_format._lazy import at_first_use

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
        "OptionFact": "option_facts",
        "ReadConfig": "read_config",
        "WriteConfig": "write_config",
        "check_against_table": "table_conflicts",
        "describe": "option_facts",
        "explain": "option_facts",
        "parse_read_options": "read_config",
        "parse_write_options": "write_config",
    },
)
