from _typeshed import ReadableBuffer

def encode(data: ReadableBuffer) -> bytes:
    """Base64 digits of some bytes, padded."""

def decode(text: ReadableBuffer) -> bytes | None:
    """The bytes that base64 digits say; None where a byte is no digit, or their number is none of base64."""
