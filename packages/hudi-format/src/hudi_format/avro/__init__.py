"""Avro binary decoder and encoder for Arrow columns: `Decoder` and `Encoder`."""

from hudi_format.avro.decoder import Decoder
from hudi_format.avro.encoder import Encoder

__all__ = ["Decoder", "Encoder"]
