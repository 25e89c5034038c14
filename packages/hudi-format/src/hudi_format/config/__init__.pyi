from hudi_format.config.against_table import check_against_table as check_against_table
from hudi_format.config.facts import OptionFact as OptionFact
from hudi_format.config.facts import describe as describe
from hudi_format.config.facts import explain as explain
from hudi_format.config.read import ReadConfig as ReadConfig
from hudi_format.config.read import parse_read_options as parse_read_options
from hudi_format.config.write import WriteConfig as WriteConfig
from hudi_format.config.write import parse_write_options as parse_write_options

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
