"""Resizes of rings as clustering plans, which Apache Hudi makes and executes too.

    <t>.replacecommit.requested: input groups, one for each split or merge, with the slices that it reads, the new nodes
    of the ring, and the number of resizes that the ring had

Writers of Apache Hudi write to the old and to the new file groups while such a plan is pending; those of this project
write to the buckets that it leaves as they are, and are refused for others until it is executed.  A plan that was begun
by a process that died is executed from the start.

Source: BaseConsistentHashingBucketClusteringPlanStrategy and HoodieSparkConsistentBucketIndex.updateLocation of Apache
Hudi 0.15, and the plans that it wrote (tests/interop/test_bucket_resizes.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.model import FileSlice, join_path
from hudi_format.storage.protocol import Storage
from hudi_index.bucket import FEATURE
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata, HashingNode
from hudi_timeline.file_system_view.bucket_groups import table_index
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import load_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.services.buckets.resize_plan import MERGE, SPLIT, BucketMove, ResizePlan
from hudi_timeline.timeline.action_metadata import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringStrategy,
    ReplaceRequest,
    SliceName,
    read_action,
)
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.avro_files import CHILD_NODES
from hudi_timeline.timeline.instant import REQUESTED, Instant

EXECUTION = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
PARTITION, CHILDREN, SEQUENCE = "clustering.group.partition", CHILD_NODES, "clustering.group.sequence.no"
REPLACED, DELETED = "REPLACE", "DELETE"


def pending_clusterings(storage: Storage, timeline: Timeline) -> list[Instant]:
    """Clusterings that are planned, or were begun, and are not completed."""
    return [i for i in timeline.pending_writes() if is_clustering(storage, timeline, i)]


def as_request(plan: ResizePlan, before: Mapping[str, HashingMetadata], uri: str) -> ReplaceRequest:
    """Request of a clustering that does a resize of rings.

    Args:
        before: rings that the plan was made of.
        uri: of the table; a plan names files by where they are.
    """
    groups = []
    for move in plan.moves:
        old, new = before[move.partition], plan.rings[move.partition]
        if not isinstance(new, HashingMetadata):
            raise ValueError("only rings are resized by a clustering")
        nodes = [_plain(n, REPLACED) for n in new.nodes if n.file_id in move.targets.values()]
        values = {n["value"] for n in nodes}
        gone = [n for n in old.nodes if n.file_id in move.file_ids and n.value not in values]
        nodes = [*(_plain(n, DELETED) for n in gone), *nodes]
        groups.append(
            ClusteringGroup(
                slices=tuple(_named(s, uri) for s in move.slices),
                output_groups=len(move.targets),
                extra={
                    PARTITION: move.partition,
                    CHILDREN: json.dumps(nodes),
                    SEQUENCE: str(old.seq_no),
                },
            )
        )
    clustering = ClusteringPlan(tuple(groups), ClusteringStrategy(EXECUTION), preserve_meta_columns=True)
    return ReplaceRequest("CLUSTER", clustering)


def _plain(node: HashingNode, tag: str) -> dict[str, object]:
    return {"value": node.value, "fileIdPrefix": node.file_id_prefix, "tag": tag}


def _named(one: FileSlice, uri: str) -> SliceName:
    base = "" if one.base_file is None else f"{uri}/{one.base_file.path}"
    return SliceName(one.partition, one.file_id, base, tuple(f"{uri}/{f.path}" for f in one.log_files))


def read_resize(snapshot: TableSnapshot, pending: Instant) -> ResizePlan:
    """Resize that a pending clustering plans, of the table as it is.

    Raises:
        UnsupportedError: a clustering of another kind.
        CorruptFileError: a plan that contradicts itself, or the ring.
        ConcurrentWriterError: it was taken back meanwhile.
    """
    table, path = snapshot.storage.uri, pending.path_in(REQUESTED)
    try:
        found = read_action(
            snapshot.storage, replace(pending, state=REQUESTED, file_name=path.rpartition("/")[2])
        )
    except MissingFileError:
        raise ConcurrentWriterError(
            "the clustering was taken back by another process", table=table, instant=pending.time,
            remedy="look at the timeline.",
        ) from None  # fmt: skip
    index = table_index(snapshot)
    plan = found.clustering if isinstance(found, ReplaceRequest) else None
    groups = () if plan is None else plan.groups
    if not isinstance(index, ConsistentBucketIndex) or any(CHILDREN not in g.extra for g in groups):
        raise UnsupportedError(
            f"the clustering {pending.time} is not a resize of buckets", table=table, instant=pending.time, file=path,
            remedy="run the clustering with Apache Hudi, or roll it back there.", feature=FEATURE,
        )  # fmt: skip
    partitions = {g.extra.get(PARTITION, "") for g in groups}
    before = load_rings(snapshot, partitions)
    slices = {(s.partition, s.file_id): s for s in newest_slices_of(snapshot, sorted(partitions))}
    try:
        moves, rings = _resized(groups, before, slices)
    except (ValueError, RecursionError) as e:
        raise CorruptFileError(
            f"the clustering {pending.time} cannot be executed: {e}", table=table, instant=pending.time, file=path,
            remedy="roll it back: `hudi rollback PATH INSTANT`.",
        ) from None  # fmt: skip
    counts = {p: (len(before[p].nodes), len(r.nodes)) for p, r in rings.items()}
    return ResizePlan(index, index, tuple(moves), rings, counts)


def refuse_planned_buckets(snapshot: TableSnapshot, groups: Iterable[tuple[str, str]]) -> None:
    """Refuse rows for buckets that a pending resize splits or merges.

    Args:
        groups: file groups that the rows go to, as (partition, file id); new ones too.

    Raises:
        UnsupportedError: the file group, and the resize.
        CorruptFileError, ConcurrentWriterError: as `read_resize`.
    """
    asked = sorted(set(groups))
    for pending in pending_clusterings(snapshot.storage, snapshot.timeline):
        plan = read_resize(snapshot, pending)
        before = load_rings(snapshot, plan.rings)
        for partition, file_id in asked:
            after = plan.rings.get(partition)
            if isinstance(after, HashingMetadata) and not before[partition].keeps(file_id, after):
                raise UnsupportedError(
                    f"file group {file_id} of partition {partition or '.'} is split or merged by the clustering "
                    f"{pending.time}, which is not finished",
                    table=snapshot.storage.uri, instant=pending.time, feature=FEATURE,
                    remedy="execute it, then write: `hudi buckets resize PATH --pending`, or "
                    'resize_buckets(mode="execute"); writes to other buckets go on meanwhile.',
                )  # fmt: skip


def _resized(
    groups: Sequence[ClusteringGroup],
    before: Mapping[str, HashingMetadata],
    slices: Mapping[tuple[str, str], FileSlice],
) -> tuple[list[BucketMove], dict[str, HashingMetadata]]:
    """Moves and rings of a plan; ValueError where it is none."""
    nodes: dict[str, dict[int, HashingNode]] = {p: {n.value: n for n in r.nodes} for p, r in before.items()}
    made: list[list[HashingNode]] = []
    for group in groups:
        partition = group.extra.get(PARTITION, "")
        if partition not in nodes:
            raise ValueError(f"partition {partition!r} has no ring")
        if group.extra.get(SEQUENCE) != str(before[partition].seq_no):
            raise ValueError(f"the ring of partition {partition!r} was resized since it was planned")
        made.append([])
        for value, node, tag in map(_child, _children(group.extra[CHILDREN])):
            if tag == DELETED:
                nodes[partition].pop(value, None)
            else:
                nodes[partition][value] = node
                made[-1].append(node)
    rings = {}
    for partition in {g.extra.get(PARTITION, "") for g in groups}:
        ring = before[partition]
        after = tuple(sorted(nodes[partition].values(), key=lambda n: n.value))
        rings[partition] = replace(ring, instant="", seq_no=ring.seq_no + 1, nodes=after)
    moves = []
    for group, own in zip(groups, made, strict=True):
        partition = group.extra.get(PARTITION, "")
        read = tuple(_slice(s, partition, slices) for s in group.slices)
        places = {n.file_id: i for i, n in enumerate(rings[partition].nodes)}
        targets = {places[n.file_id]: n.file_id for n in own if n.file_id in places}
        if not targets or not read:
            raise ValueError(f"a group of partition {partition!r} has nothing to read, or to write")
        moves.append(BucketMove(MERGE if len(read) > 1 else SPLIT, partition, read, targets))
    return moves, rings


def _children(text: str) -> list[object]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("its nodes are no list")
    return found


def _child(given: object) -> tuple[int, HashingNode, str]:
    tag = given.get("tag") if isinstance(given, dict) else None
    if not isinstance(given, dict) or tag not in (REPLACED, DELETED):
        raise ValueError(f"{given!r} is no new node")
    node = HashingNode.parse({**given, "tag": "NORMAL"})
    return node.value, node, str(tag)


def _slice(named: SliceName, partition: str, slices: Mapping[tuple[str, str], FileSlice]) -> FileSlice:
    """The slice as it was planned: what was appended since then was written to the new file groups too."""
    found = slices.get((partition, named.file_id))
    if found is None or named.partition != partition:
        raise ValueError(f"file group {named.file_id} of partition {partition!r} is not there")
    wanted = {join_path(partition, path.rpartition("/")[2]) for path in named.log_files}
    logs = tuple(f for f in found.log_files if f.path in wanted)
    base = "" if found.base_file is None else found.base_file.name
    if base != named.data_file.rpartition("/")[2] or len(logs) != len(wanted):
        raise ValueError(
            f"file group {named.file_id} of partition {partition!r} has other files than it names"
        )
    return replace(found, log_files=logs)
