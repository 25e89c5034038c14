"""A plain model of tables whose records move between partitions, under payloads of Debezium and merges of the user's.

The model is a dict of keys: where each record is, and what it is.  It knows nothing of files, logs or indexes.
"""

import itertools
from dataclasses import dataclass
from types import MappingProxyType

import merge_functions
import pyarrow as pa

from hudi_format.merge.user_merger import custom_rule, merge_text

GONE = "__debezium_unavailable_value"
PAYLOAD = "hoodie.datasource.write.payload.class"
DEBEZIUM = "org.apache.hudi.common.model.debezium."


class Postgres:
    """Of one write the greatest position counts; an older one than what is stored is nothing."""

    ordering = "_event_lsn"
    options = MappingProxyType({PAYLOAD: DEBEZIUM + "PostgresDebeziumAvroPayload"})
    schema = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("_event_lsn", pa.int64()), ("v", pa.string()),
         ("_change_operation_type", pa.string())]
    )  # fmt: skip

    @staticmethod
    def row(rng, place, *, delete):
        value = rng.choice([GONE, None, f"v{rng.randrange(99)}"])
        return {
            "_event_lsn": place,
            "v": value,
            "_change_operation_type": "d" if delete else rng.choice("cu"),
        }

    @staticmethod
    def deletes(row):
        return row["_change_operation_type"] == "d"

    def met(self, stored, rows):
        new = max(enumerate(rows), key=lambda r: (r[1]["_event_lsn"], r[0]))[1]
        if stored is None:
            return None if self.deletes(new) else new
        if new["_event_lsn"] < stored["_event_lsn"]:
            return stored
        if self.deletes(new):
            return None
        return new | ({"v": stored["v"]} if new["v"] == GONE else {})


class MySql:
    """Positions are two numbers; of equal ones the stored record stays."""

    ordering = "_event_seq"
    options = MappingProxyType({PAYLOAD: DEBEZIUM + "MySqlDebeziumAvroPayload"})
    schema = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("_event_seq", pa.string()), ("v", pa.string()),
         ("_change_operation_type", pa.string())]
    )  # fmt: skip

    @staticmethod
    def row(rng, place, *, delete):
        seq = f"{place // 7}.{place % 7 * 45}"  # 9.90 comes before 9.135, and that before 10.0
        return {
            "_event_seq": seq,
            "v": f"v{rng.randrange(99)}",
            "_change_operation_type": "d" if delete else "u",
        }

    deletes = staticmethod(Postgres.deletes)

    def met(self, stored, rows):
        def place(row):
            return tuple(map(int, row["_event_seq"].split(".")))

        new = max(enumerate(rows), key=lambda r: (place(r[1]), r[0]))[1]
        if stored is not None and place(new) <= place(stored):
            return stored
        return None if self.deletes(new) else new


@dataclass
class Own:
    """A merge of the user's: all rows meet one after the other, a delete ends what was before it."""

    merge: object
    two: object
    first: object = staticmethod(lambda row: row)
    ordering = "ts"
    schema = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("count", pa.int64()), ("name", pa.string()),
         ("_hoodie_is_deleted", pa.bool_())]
    )  # fmt: skip

    @property
    def options(self):
        return {"hudi.merge": self.merge}

    @property
    def rule(self):
        return custom_rule(merge_text(self.merge), ["id", "p"])

    @staticmethod
    def row(rng, place, *, delete):
        name = rng.choice([None, f"n{rng.randrange(99)}"])
        return {"ts": place, "count": rng.randrange(-3, 5), "name": name, "_hoodie_is_deleted": delete}

    @staticmethod
    def deletes(row):
        return row["_hoodie_is_deleted"]

    def met(self, stored, rows):
        for row in rows:
            if self.deletes(row):
                stored = None
            else:
                stored = self.first(row) if stored is None else self.two(stored, row)
        return stored


def add_up(old, new):
    total = old["count"] + new["count"]
    return None if total == 0 else new | {"count": total}


def by_column(old, new):
    newer = new if new["ts"] >= old["ts"] else old
    name = new["name"] if new["name"] is not None else old["name"]
    return newer | {"p": new["p"], "count": old["count"] + new["count"], "name": name}


MERGES = {
    "postgres": Postgres(),
    "mysql": MySql(),
    "expressions": Own({"count": "sum", "name": "non_null"}, by_column),
    "function": Own(merge_functions.add_up, add_up),
    "hooked": Own(
        {"function": merge_functions.in_unit, "insert": merge_functions.first_of,
         "properties": {"times": "2", "name": "new"}},
        lambda old, new: new | {"count": (old["count"] + new["count"]) * 2},
        lambda new: None if new["count"] < 0 else new | {"name": "new"},
    ),
}  # fmt: skip


def after(state, rows, rule, *, moves, ghosts=None):
    """The model's state after a write: records by key, with their partition.

    Args:
        ghosts: where deleted records were, if they come back there: a log deleted them, and the index still finds them.
    """
    state, ghosts = dict(state), {} if ghosts is None else ghosts
    for key, mine in itertools.groupby(sorted(rows, key=lambda r: r["id"]), key=lambda r: r["id"]):
        where, stored = state.pop(key, (None, None))
        left = rule.met(stored, list(mine))
        if left is None:
            ghosts |= {key: where} if where is not None else {}
        elif where is None:
            state[key] = ghosts.get(key, left["p"]), left
        else:
            state[key] = left["p"] if moves and left is not stored else where, left
    return state


def shown(state):
    return {
        k: (where, {n: v for n, v in row.items() if n not in ("p", "_hoodie_is_deleted")})
        for k, (where, row) in state.items()
    }


class Source:
    """Random rows of a source, which come late now and then, and stand in another partition each time.

    What records of a log make of one another is not what a payload makes of one and the stored row, in Apache Hudi too:
    a late delete deletes a base row all the same, a record that is older than a deletion before it is not seen, of
    equal ones the later wins, and nothing is filled.  `strict` has no such deletes, and `distinct` also no such rows.
    """

    def __init__(self, rng, rule, keys, *, strict=False, distinct=False):
        self.rng, self.rule, self.keys, self.strict, self.distinct = rng, rule, keys, strict, distinct
        self.taken = set()
        self.least, self.most = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)

    def row(self, key):
        delete = self.rng.random() < 0.2
        place = self.least[key] + self.rng.randrange(12)
        if delete and self.strict:
            place = self.least[key] = self.most[key] + 1
            self.least[key] += 1
        while self.distinct and (key, place) in self.taken:
            place += 1
            self.least[key] += delete
        self.taken.add((key, place))
        self.most[key] = max(self.most[key], place)
        row = {"id": key, "p": self.rng.choice("abc")} | self.rule.row(self.rng, place, delete=delete)
        return row | {"v": "v"} if self.distinct and row.get("v") == GONE else row

    def rows(self):
        chosen = self.rng.sample(self.keys, len(self.keys) // 2)
        found = [[self.row(key) for _ in range(self.rng.randint(1, 3))] for key in chosen]
        return [row for nth in itertools.zip_longest(*found) for row in nth if row is not None]
