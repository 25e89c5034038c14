"""Lock of DynamoDBBasedLockProvider: an item that its holder renews.

The item is that of Apache Hudi's client, so that its writers and ours exclude each other: its version changes with each
renewal, and whoever has seen one version for as long as the lease says may take it.  No clocks are compared.

Source: amazon-dynamodb-lock-client 1.2, which Apache Hudi 0.15 uses.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from hudi_format.errors import LockError, UnsupportedError
from hudi_format.fork_safe import Owned
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding, process_in
from hudi_timeline.concurrency.locks.provider import InProcessLock, is_abandoned
from hudi_timeline.concurrency.locks.renewal import Renewal
from hudi_timeline.options.transaction_config import LockConfig
from hudi_timeline.options.transaction_options import (
    AWS_ACCESS_KEY,
    AWS_ROLE_ARN,
    AWS_SECRET_KEY,
    DYNAMODB_ENDPOINT,
    DYNAMODB_KEY,
    DYNAMODB_REGION,
    DYNAMODB_TABLE,
    LEAST_LEASE_MS,
    LOCK_WAIT_MS,
)

log = logging.getLogger("hudi")

KEY, OWNER, LEASE, VERSION, RELEASED = (
    "key", "ownerName", "leaseDuration", "recordVersionNumber", "isReleased",
)  # fmt: skip
_RENEWALS_IN_A_LEASE = 3
_MOST_DIGITS = 15
_POLL_S = 0.2
# For one try to be answered, which takes milliseconds: a connection may hang.
_LEAST_TIMEOUT_S, _MOST_TIMEOUT_S = 1.0, 10.0
_TRIES_TO_GIVE_BACK = 2  # what was done under the lock is done: nobody waits long for its end

_REFUSED, _NO_TABLE, _TABLE_IS_MADE = (
    "ConditionalCheckFailedException", "ResourceNotFoundException", "ResourceInUseException",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """The item of a lock.

    Attributes:
        lease_ms: how long a version of it counts.
        released: whether its holder has given it back without deleting it.
    """

    owner: str
    version: str
    lease_ms: int
    released: bool

    @property
    def process(self) -> heartbeat.Owner | None:
        """Holder's process; None for Apache Hudi's."""
        return process_in(self.owner)


class DynamoDBLock:
    """A lock in DynamoDB.

    Args:
        key: of the lock's item.
        config: table, region, endpoint and credentials.
        clock: seconds that only grow.
    """

    def __init__(self, key: str, config: LockConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._library = _library()
        self._config = config
        self._table, self._key = config.dynamodb_table or "", key
        self._threads = InProcessLock(self.name)
        self._lease_ms = max(config.wait_ms, LEAST_LEASE_MS)
        self._clock = clock
        self._owned = Owned()
        self._asking = threading.Lock()
        self._owner = self._version = ""
        self._until = 0.0
        self._seen: tuple[str, float] = ("", 0.0)
        self._renewal: Renewal | None = None

    @property
    def name(self) -> str:
        return f"item {self._key!r} of the DynamoDB table {self._table}"

    def _ask(self, method: str, *, tries: int | None = None, **arguments: Any) -> Any:
        """Answer of DynamoDB; KeyError with the name of a refusal that is expected.

        Args:
            tries: of a request without an answer; None for as many as the options say.
        """
        client = _client(self._config, tries or self._config.retries + 1, self._lease_ms, os.getpid())
        try:
            return getattr(client, method)(TableName=self._table, **arguments)
        except self._library.refused as e:
            code = str(e.response.get("Error", {}).get("Code", ""))
            if code in (_REFUSED, _NO_TABLE, _TABLE_IS_MADE):
                raise KeyError(code) from None
            reason = str(e)
        except self._library.failed as e:
            reason = str(e)
        raise LockError(
            f"DynamoDB gives no answer about {self.name}: {' '.join(reason.split())}",
            remedy=f"check {DYNAMODB_TABLE}, {DYNAMODB_ENDPOINT}, region and credentials, then run the write again.",
        ) from None

    def _item(self) -> Item | None:
        found = self._ask("get_item", Key={KEY: {"S": self._key}}, ConsistentRead=True).get("Item")
        if found is None:
            return None
        text = {name: str(value.get("S", "")) for name, value in found.items()}
        lease = text.get(LEASE, "")
        if not (lease.isascii() and lease.isdecimal() and len(lease) <= _MOST_DIGITS and text.get(VERSION)):
            raise LockError(
                f"the item under the lock's key was not written by a lock: {self.name}",
                remedy=f"delete the item if no write is running, or name another {DYNAMODB_KEY}.",
            )
        return Item(text.get(OWNER, ""), text[VERSION], int(lease), text.get(RELEASED) == "1")

    def _item_or_none(self) -> Item | None:
        """The item; None also where the table of locks is gone, as with a server that has come back empty."""
        try:
            return self._item()
        except KeyError:
            return None

    def try_acquire(self) -> bool:
        if not self._threads.try_acquire():
            return False
        try:
            taken = self._take()
        except BaseException:
            self.release()
            raise
        if not taken:
            self._threads.release()
        return taken

    def _take(self) -> bool:
        try:
            found = self._item()
        except KeyError:
            self._make_table()
            found = self._item_or_none()
        if found is not None and not self._is_free(found):
            return False
        self._owned = Owned()
        begun = self._clock()
        self._version = str(uuid.uuid4())
        self._owner = f"{uuid.uuid4()} {heartbeat.this_process().text()}"
        item = {KEY: self._key, OWNER: self._owner, LEASE: str(self._lease_ms), VERSION: self._version}
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#k)",
            "ExpressionAttributeNames": {"#k": KEY},
        }
        if found is not None:
            condition = {
                "ConditionExpression": "attribute_exists(#k) AND #v = :v",
                "ExpressionAttributeNames": {"#k": KEY, "#v": VERSION},
                "ExpressionAttributeValues": {":v": {"S": found.version}},
            }
        try:
            self._ask("put_item", Item={name: {"S": value} for name, value in item.items()}, **condition)
        except KeyError:
            # A request that was sent twice refuses itself: what is there now decides.
            there = self._item_or_none()
            if there is None or there.owner != self._owner:
                self._owner = self._version = ""
                return False
        self._until = begun + self._lease_ms / 1000
        every_s = self._lease_ms / 1000 / _RENEWALS_IN_A_LEASE
        self._renewal = Renewal(self._renew, lambda: is_abandoned(self), every_s, self.name)
        return True

    def _is_free(self, found: Item) -> bool:
        if found.released or (found.process is not None and heartbeat.has_ended(found.process)):
            return True
        version, since = self._seen
        if version != found.version:
            self._seen = found.version, self._clock()
            return False
        return self._clock() - since > found.lease_ms / 1000

    def _renew(self) -> None:
        with self._asking:
            if not self._owner:
                return
            begun, fresh = self._clock(), str(uuid.uuid4())
            try:
                self._ask(
                    "update_item",
                    Key={KEY: {"S": self._key}},
                    UpdateExpression="SET #v = :fresh, #l = :l",
                    ConditionExpression="attribute_exists(#k) AND #o = :o",
                    ExpressionAttributeNames={"#k": KEY, "#o": OWNER, "#v": VERSION, "#l": LEASE},
                    ExpressionAttributeValues={
                        ":fresh": {"S": fresh},
                        ":o": {"S": self._owner},
                        ":l": {"S": str(self._lease_ms)},
                    },
                )
            except KeyError:
                self._until = begun
                raise self._lost() from None
            self._version = fresh
            self._until = begun + self._lease_ms / 1000

    def verify(self) -> None:
        self._threads.verify()
        if not self._owner or not self._owned.here:
            raise self._lost()
        self._renew()
        if self._clock() >= self._until:
            raise self._lost()

    def _lost(self) -> LockError:
        return LockError(
            f"the lock was lost to another writer, or is not held: {self.name}",
            remedy=f"run the write again; where renewals come late, raise {LOCK_WAIT_MS}.",
        )

    def release(self) -> None:
        renewal, self._renewal = self._renewal, None
        try:
            if not self._owned.here:  # the lease is that of the process that forked this one
                return
            if renewal is not None:
                renewal.stop()
            if self._owner:
                # Another's item must stay: ours had run out and was taken.
                self._delete(self._owner, tries=_TRIES_TO_GIVE_BACK)
        except LockError as e:
            # What was done under the lock stays done; the lease runs out by itself.
            log.warning("%s could not be given back and runs out by itself: %s", self.name, e)
        finally:
            self._owner = self._version = ""
            self._threads.release()

    def _delete(self, owner: str, tries: int | None = None) -> bool:
        """Delete the item while it is an owner's; returns whether it was."""
        try:
            self._ask(
                "delete_item",
                tries=tries,
                Key={KEY: {"S": self._key}},
                ConditionExpression="#o = :o",
                ExpressionAttributeNames={"#o": OWNER},
                ExpressionAttributeValues={":o": {"S": owner}},
            )
        except KeyError:
            return False
        return True

    def holding(self) -> Holding | None:
        found = self._item_or_none()
        return None if found is None or found.released else Holding(found.owner, found.owner, found.process)

    def end_holding(self, token: str) -> bool:
        return self._delete(token)

    def holder(self) -> str:
        found = self.holding()
        return self._threads.holder() or ("" if found is None else found.holder)

    def _make_table(self) -> None:
        config = self._config
        arguments: dict[str, Any] = {"BillingMode": config.dynamodb_billing_mode}
        if config.dynamodb_billing_mode == "PROVISIONED":
            arguments["ProvisionedThroughput"] = {
                "ReadCapacityUnits": config.dynamodb_read_capacity,
                "WriteCapacityUnits": config.dynamodb_write_capacity,
            }
        try:
            self._ask(
                "create_table",
                KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
                **arguments,
            )
            log.info("made the DynamoDB table %s for locks", self._table)
        except KeyError as e:
            if e.args[0] != _TABLE_IS_MADE:  # by another writer, at the same time
                raise LockError(
                    f"DynamoDB does not make the table {self._table} for locks: {e.args[0]}",
                    remedy=f"make it, with the key {KEY!r}, or check {DYNAMODB_TABLE} and {DYNAMODB_ENDPOINT}.",
                ) from None
        deadline = self._clock() + config.dynamodb_creation_ms / 1000
        while True:
            try:
                if self._ask("describe_table")["Table"]["TableStatus"] == "ACTIVE":
                    return
            except KeyError:
                pass  # it is not seen yet
            if self._clock() > deadline:
                raise LockError(
                    f"the DynamoDB table {self._table} was not ready within {config.dynamodb_creation_ms} ms",
                    remedy="run the write again when it is.",
                )
            time.sleep(_POLL_S)


class _Botocore:
    """The client library; imported where a lock of DynamoDB is asked for."""

    def __init__(self) -> None:
        exceptions = import_module("botocore.exceptions")
        self.credentials = import_module("botocore.credentials")
        self.session = import_module("botocore.session").get_session
        self.settings = import_module("botocore.config").Config
        self.refused = exceptions.ClientError
        self.failed = (exceptions.BotoCoreError, ValueError)  # an endpoint that is no address


def _library() -> _Botocore:
    try:
        return _Botocore()
    except ImportError as e:
        raise UnsupportedError(
            f"locks in DynamoDB need a missing package ({e})",
            remedy='run pip install "hudi-timeline[dynamodb]".',
        ) from None


@lru_cache(maxsize=16)
def _client(config: LockConfig, tries: int, lease_ms: int, process: int) -> Any:
    """Client of a process: its connections are not shared with a forked child.

    Args:
        tries: of each request.
        lease_ms: in which as many tries without an answer are over, not counting the pauses between them.
    """
    library = _library()
    endpoint = config.dynamodb_endpoint
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    region = config.dynamodb_region or os.environ.get("AWS_REGION") or DYNAMODB_REGION.value
    session = library.session()
    if config.aws_access_key is not None:
        session.set_credentials(config.aws_access_key, config.aws_secret_key, config.aws_session_token)
    if config.aws_role_arn is not None:
        _assume_role(library, session, config, region)
    return session.create_client(
        "dynamodb",
        region_name=region,
        endpoint_url=endpoint,
        config=library.settings(
            retries={"mode": "standard", "total_max_attempts": tries},
            connect_timeout=_longest_s(tries, lease_ms),
            read_timeout=_longest_s(tries, lease_ms),
        ),
    )


def _longest_s(tries: int, lease_ms: int) -> float:
    return min(max(lease_ms / 1000 / tries, _LEAST_TIMEOUT_S), _MOST_TIMEOUT_S)


def _assume_role(library: _Botocore, session: Any, config: LockConfig, region: str) -> None:
    """Give a session the role's credentials, asked for when they are needed and again before they end."""
    source = session.get_credentials()
    if source is None:
        raise LockError(
            f"{AWS_ROLE_ARN}={config.aws_role_arn}, but there are no credentials to assume it with",
            remedy=f"give {AWS_ACCESS_KEY} and {AWS_SECRET_KEY}, or credentials in the environment.",
        )
    more = {"RoleSessionName": config.aws_role_session}
    if config.aws_role_external_id is not None:
        more["ExternalId"] = config.aws_role_external_id

    def client(name: str, **given: Any) -> Any:
        return library.session().create_client(name, region_name=region, **given)

    fetcher = library.credentials.AssumeRoleCredentialFetcher(
        client_creator=client, source_credentials=source, role_arn=config.aws_role_arn, extra_args=more
    )
    # botocore has no public name for giving a session credentials that renew themselves; its own profiles do this.
    session._credentials = library.credentials.DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
