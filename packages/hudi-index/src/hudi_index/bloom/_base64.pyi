from _typeshed import ReadableBuffer

def encode(data: ReadableBuffer) -> bytes:
    """Padded base64 of bytes."""

def decode(text: ReadableBuffer) -> bytes | None:
    """Decoded base64; None for invalid text."""
