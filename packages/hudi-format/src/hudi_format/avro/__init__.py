"""Avro binary to Arrow columns and back: `Decoder` and `Encoder`."""

from hudi_format.avro.decoder import Decoder

__all__ = ["Decoder"]
