"""Options of reads and writes: Apache Hudi's names, parsed once, none ignored without a word."""

from hudi_format.config.against_table import check_against_table
from hudi_format.config.facts import OptionFact, describe, explain
from hudi_format.config.read import ReadConfig, parse_read_options
from hudi_format.config.write import WriteConfig, parse_write_options

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
