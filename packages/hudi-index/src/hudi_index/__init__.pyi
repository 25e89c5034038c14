from hudi_index.bloom.filter import BloomFilter as BloomFilter
from hudi_index.bloom.filter import parse_filter as parse_filter
from hudi_index.hashing.java import bucket_ids as bucket_ids
from hudi_index.hashing.java import java_hash as java_hash
from hudi_index.hashing.java import min_max as min_max

__version__: str
__all__ = ["BloomFilter", "__version__", "bucket_ids", "java_hash", "min_max", "parse_filter"]
