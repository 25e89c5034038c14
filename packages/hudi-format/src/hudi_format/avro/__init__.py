"""Avro binary to Arrow columns and back: `Decoder` and `Encoder`."""

from hudi_format.avro.decoder import Decoder
from hudi_format.avro.encoder import Encoder

__all__ = ["Decoder", "Encoder"]
