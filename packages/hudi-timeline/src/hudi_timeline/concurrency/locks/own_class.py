"""Lock of a class that the call itself names, as `module:Class`; a table cannot name one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_format._checks import imported
from hudi_format.errors import HudiError, InvalidOptionError, LockError
from hudi_timeline.concurrency.locks.provider import Lock
from hudi_timeline.options.transaction_options import LOCK_PROVIDER

_METHODS = ("try_acquire", "verify", "release", "holder")
# Of `QueuedLock` and `ShownLock`.
_MORE = ("wait_for_turn", "holding", "end_holding")


class OwnLock:
    """A lock of a class of the user's, each of whose errors is a `LockError` here.

    It has those methods of `QueuedLock` and `ShownLock` that the class has.

    Args:
        provider: the class, as the option names it.
        uri: of the table.
    """

    def __init__(self, lock: Lock, provider: str, uri: str) -> None:
        self._lock, self._provider, self._uri = lock, provider, uri
        for method in _MORE:
            if callable(getattr(lock, method, None)):
                setattr(self, method, self._telling(method))

    @property
    def name(self) -> str:
        return self._lock.name

    def try_acquire(self) -> bool:
        return bool(self._telling("try_acquire")())

    def verify(self) -> None:
        self._telling("verify")()

    def release(self) -> None:
        self._telling("release")()

    def holder(self) -> str:
        try:
            return self._lock.holder()
        except Exception as e:  # noqa: BLE001 - that somebody holds it is what has to be said
            return f"an unknown holder ({type(e).__name__}: {e})"

    def _telling(self, method: str) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            try:
                return getattr(self._lock, method)(*args)
            except HudiError:
                raise
            except Exception as e:
                raise _failed(self._provider, method, e, self._uri) from e

        return asked


def _failed(provider: str, where: str, error: Exception, uri: str) -> LockError:
    return LockError(
        f"{LOCK_PROVIDER}={provider} failed in {where}: {type(error).__name__}: {error}",
        table=uri,
        remedy="run the write again when the lock answers; where the class is at fault, correct it.",
        option=LOCK_PROVIDER,
    )


def own_lock(uri: str, provider: str, options: Mapping[str, str]) -> OwnLock:
    """Lock of a class of the user's, made of the table's URI and the options.

    Raises:
        InvalidOptionError: there is no such class, or it makes no lock.
        LockError: it failed.
    """
    found = imported(provider, LOCK_PROVIDER)
    try:
        lock: Lock = found(uri, dict(options))
    except TypeError as e:
        raise InvalidOptionError(
            f"{LOCK_PROVIDER}={provider} makes no lock: {e}",
            table=uri,
            remedy="give a class that is made of the table's URI and the options.",
            option=LOCK_PROVIDER,
        ) from e
    except HudiError:
        raise
    except Exception as e:
        raise _failed(provider, "its constructor", e, uri) from e
    missing = [m for m in _METHODS if not callable(getattr(lock, m, None))]
    if missing or not isinstance(getattr(lock, "name", None), str):
        raise InvalidOptionError(
            f"{LOCK_PROVIDER}={provider} makes no lock: it has no {', '.join(missing or ['name'])}",
            table=uri,
            remedy="give a class that is made of the table's URI and the options, with the attribute name and the "
            "methods try_acquire, verify, release and holder of hudi_timeline.concurrency.locks.provider.Lock.",
            option=LOCK_PROVIDER,
        )
    return OwnLock(lock, provider, uri)
