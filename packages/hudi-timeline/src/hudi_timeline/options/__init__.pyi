from hudi_timeline.options.option_facts import OptionFact as OptionFact
from hudi_timeline.options.option_facts import describe as describe
from hudi_timeline.options.option_facts import explain as explain
from hudi_timeline.options.read_config import ReadConfig as ReadConfig
from hudi_timeline.options.read_config import parse_read_options as parse_read_options
from hudi_timeline.options.table_conflicts import check_against_table as check_against_table
from hudi_timeline.options.write_config import WriteConfig as WriteConfig
from hudi_timeline.options.write_config import parse_write_options as parse_write_options

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
