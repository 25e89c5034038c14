"""Where may this key be? Bloom filters, Java hashes, bucket ids and key look-ups for Apache Hudi tables."""

__version__ = "0.1.0"
