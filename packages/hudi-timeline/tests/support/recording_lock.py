"""A lock between threads, as a user may write one, that keeps what happened while it was held and while it was not."""

from typing import ClassVar


class RecordingLock:
    """Lock by name.

    Attributes:
        events: "lock", "unlock" and what tests add, in their order.
    """

    holders: ClassVar[dict] = {}
    events: ClassVar[list] = []

    def __init__(self, uri, options):
        self.name = uri

    def try_acquire(self):
        got = RecordingLock.holders.setdefault(self.name, self) is self
        if got:
            RecordingLock.events.append("lock")
        return got

    def verify(self):
        assert RecordingLock.holders.get(self.name) is self

    def release(self):
        if RecordingLock.holders.get(self.name) is self:
            del RecordingLock.holders[self.name]
            RecordingLock.events.append("unlock")

    def holder(self):
        return "another writer"
