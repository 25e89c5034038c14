from hudi_index.bloom.filter import BloomFilter as BloomFilter
from hudi_index.bloom.filter import parse_filter as parse_filter
from hudi_index.custom_index.index_class import CustomIndex as CustomIndex
from hudi_index.custom_index.index_class import KeyStore as KeyStore
from hudi_index.custom_index.index_class import StoreChange as StoreChange
from hudi_index.custom_index.index_class import StoredIndex as StoredIndex
from hudi_index.custom_index.index_class import StoredKeys as StoredKeys
from hudi_index.hashing.java import bucket_ids as bucket_ids
from hudi_index.hashing.java import java_hash as java_hash
from hudi_index.hashing.java import min_max as min_max
from hudi_index.hashing.ring import ring_hashes as ring_hashes
from hudi_index.hashing.ring import ring_places as ring_places
from hudi_index.key_ranges import keys_in_ranges as keys_in_ranges

__version__: str
