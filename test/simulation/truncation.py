"""Logs that lose their end, as when a replica leads that had not all of it.

Owns the cutting of a log in the memory of embedded brokers, and the election that goes with it. Who
has to read what afterwards is ledger.py's business (KIP-320).
"""

from __future__ import annotations

from kafka.testing.logs.partition_log import PartitionLog

#: Since when clients can find out what was cut: OffsetForLeaderEpoch of version 3.
TRUNCATIONS_ARE_TOLD_SINCE = (2, 3)
#: At most so many batches are lost at a time.
MOST_BATCHES = 4


def lose_the_end(cluster, partition, chance):
    """Let some replica lead that lacks the last batches; return where the log goes on.

    Returns: the offset and the epoch of the new leader; None if there was nothing to lose, or
    nobody to lead.
    """
    log = partition.log
    starts = [each.base_offset for each in log.batches if each.base_offset >= log.start_offset]
    alive = [node for node in partition.replicas if node in cluster.state.alive]
    if not starts or not alive:
        return None
    end = chance.choice(starts[-MOST_BATCHES:])
    partition.log = _cut(log, end)
    partition.isr = alive
    partition.leader = chance.choice(alive)
    partition.leader_epoch += 1
    # Followers of this leader learn of it; so do those who wait to read.
    cluster.waiting.touch(('partition', partition.topic, partition.index))
    return end, partition.leader_epoch


def _cut(log, end):
    """Return a log of the batches before an offset, with their epochs."""
    made = PartitionLog()
    kept = [each for each in log.batches if each.base_offset < end]
    made.start_offset = made.end_offset = kept[0].base_offset if kept else end
    made.segments[0].base_offset = made.start_offset
    for batch in kept:
        made.append(batch, log.epoch_at(batch.base_offset))
    made.start_offset = log.start_offset
    made.modified_ms = log.modified_ms
    return made
