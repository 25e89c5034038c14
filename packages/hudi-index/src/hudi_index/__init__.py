"""Key lookup for Apache Hudi tables: bloom filters, Java hashes, bucket ids, rings."""

from hudi_format._lazy import at_first_use

__version__ = "0.1.0"

_HOMES = {
    "BloomFilter": "bloom.filter",
    "CustomIndex": "custom_index.index_class",
    "KeyStore": "custom_index.index_class",
    "StoreChange": "custom_index.index_class",
    "StoredIndex": "custom_index.index_class",
    "StoredKeys": "custom_index.index_class",
    "bucket_ids": "hashing.java",
    "java_hash": "hashing.java",
    "keys_in_ranges": "key_ranges",
    "min_max": "hashing.java",
    "parse_filter": "bloom.filter",
    "ring_hashes": "hashing.ring",
    "ring_places": "hashing.ring",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = at_first_use(__name__, _HOMES)
