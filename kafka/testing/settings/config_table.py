"""The tables of configs of topics, groups and client metrics: types, limits, defaults.

Read by configs.py, for all releases. A line has a name, its type, the broker config that is its
default (or ``-``), the allowed values (``low..high``, ``a|b`` for one of them, ``-`` for any)
and its default from a release on, ``~`` if the release does not have the config; ``@protocol`` is
the release itself.
"""

from __future__ import annotations

TOPIC_TABLE = """
cleanup.policy LIST log.cleanup.policy compact|delete 0.8.0=delete
compression.gzip.level INT compression.gzip.level -1..9 3.8=-1
compression.lz4.level INT compression.lz4.level 1..17 3.8=9
compression.type STRING compression.type uncompressed|zstd|lz4|snappy|gzip|producer
    0.9=producer
compression.zstd.level INT compression.zstd.level -131072..22 3.8=3
delete.retention.ms LONG log.cleaner.delete.retention.ms 0.. 0.8.1=86400000
errors.deadletterqueue.group.enable BOOLEAN - - 4.4=false
file.delete.delay.ms LONG log.segment.delete.delay.ms 0.. 0.8.0=60000
flush.messages LONG log.flush.interval.messages 0.. 0.8.0=9223372036854775807
flush.ms LONG log.flush.interval.ms 0.. 0.8.0=9223372036854775807
follower.replication.throttled.replicas LIST - - 0.10.1=
index.interval.bytes INT log.index.interval.bytes 0.. 0.8.0=4096
leader.replication.throttled.replicas LIST - - 0.10.1=
local.retention.bytes LONG log.local.retention.bytes -2.. 3.6=-2
local.retention.ms LONG log.local.retention.ms -2.. 3.6=-2
max.compaction.lag.ms LONG log.cleaner.max.compaction.lag.ms 1.. 2.3=9223372036854775807
max.decompressed.message.bytes INT max.decompressed.message.bytes 1..2147483639 4.4=2147483639
max.message.bytes INT message.max.bytes 0.. 0.8.0=1000012 2.5=1048588
message.downconversion.enable BOOLEAN log.message.downconversion.enable - 2.0=true 4.0=~
message.format.version STRING log.message.format.version - 0.10.0=@protocol 3.0=3.0-IV1 4.0=~
message.timestamp.after.max.ms LONG log.message.timestamp.after.max.ms 0..
    3.6=9223372036854775807 4.0=3600000
message.timestamp.before.max.ms LONG log.message.timestamp.before.max.ms 0..
    3.6=9223372036854775807
message.timestamp.difference.max.ms LONG log.message.timestamp.difference.max.ms 0..
    0.10.0=9223372036854775807 4.0=~
message.timestamp.type STRING log.message.timestamp.type CreateTime|LogAppendTime
    0.10.0=CreateTime
min.cleanable.dirty.ratio DOUBLE log.cleaner.min.cleanable.ratio 0..1 0.8.0=0.5
min.compaction.lag.ms LONG log.cleaner.min.compaction.lag.ms 0.. 0.10.1=0
min.insync.replicas INT min.insync.replicas 1.. 0.8.2=1
preallocate BOOLEAN log.preallocate - 0.9=false
remote.copy.lag.bytes LONG log.remote.copy.lag.bytes -1.. 4.4=-1
remote.copy.lag.ms LONG log.remote.copy.lag.ms -1.. 4.4=0
remote.log.copy.disable BOOLEAN - - 3.9=false
remote.log.delete.on.disable BOOLEAN - - 3.9=false
remote.storage.enable BOOLEAN - - 3.6=false
retention.bytes LONG log.retention.bytes - 0.8.0=-1
retention.ms LONG log.retention.ms -1.. 0.8.0=604800000
segment.bytes INT log.segment.bytes 14.. 0.8.0=1073741824
segment.index.bytes INT log.index.size.max.bytes 4.. 0.8.0=10485760
segment.jitter.ms LONG log.roll.jitter.ms 0.. 0.8.2=0
segment.ms LONG log.roll.ms 1.. 0.8.0=604800000
unclean.leader.election.enable BOOLEAN unclean.leader.election.enable - 0.8.2=true 0.11=false
"""

GROUP_TABLE = """
consumer.assignment.interval.ms INT group.consumer.assignment.interval.ms 0.. 4.3=1000
consumer.heartbeat.interval.ms INT group.consumer.heartbeat.interval.ms 1.. 4.0=5000
consumer.session.timeout.ms INT group.consumer.session.timeout.ms 1.. 4.0=45000
errors.deadletterqueue.copy.record.enable BOOLEAN - - 4.4=false
errors.deadletterqueue.topic.name STRING - - 4.4=
share.assignment.interval.ms INT group.share.assignment.interval.ms 0.. 4.3=1000
share.auto.offset.reset STRING - - 4.0=latest
share.delivery.count.limit INT group.share.delivery.count.limit 2.. 4.3=5
share.heartbeat.interval.ms INT group.share.heartbeat.interval.ms 1.. 4.0=5000
share.isolation.level STRING - read_committed|read_uncommitted 4.1=read_uncommitted
share.partition.max.record.locks INT group.share.partition.max.record.locks 100.. 4.3=2000
share.record.lock.duration.ms INT group.share.record.lock.duration.ms 1000.. 4.0=30000
share.renew.acknowledge.enable BOOLEAN - - 4.3=true
share.session.timeout.ms INT group.share.session.timeout.ms 1.. 4.0=45000
streams.assignment.interval.ms INT group.streams.assignment.interval.ms 0.. 4.3=1000
streams.assignor.name STRING - - 4.4=sticky
streams.heartbeat.interval.ms INT group.streams.heartbeat.interval.ms 1.. 4.1=5000
streams.initial.rebalance.delay.ms INT group.streams.initial.rebalance.delay.ms 0.. 4.2=3000
streams.num.standby.replicas INT group.streams.num.standby.replicas 0.. 4.1=0
streams.rack.aware.assignment.tags LIST - - 4.4=
streams.session.timeout.ms INT group.streams.session.timeout.ms 1.. 4.1=45000
"""

METRICS_TABLE = """
interval.ms INT - 100..3600000 3.7=300000
match LIST - - 3.7=
metrics LIST - - 3.7=
"""
