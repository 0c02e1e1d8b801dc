"""What a program asks Spark's reader or writer for, as options of text, made into values.

Owns the names, defaults, precedence and refusals of options, which are those of the JVM connector
(spark-sql-kafka-0-10), and a few of our own. Names are compared without case, as Spark does. Every
wrong one is refused here, on the driver, before a job starts. Does not own: options that begin with
``kafka.`` (client_options.py), the JSON of offsets (offsets.py), what topics and offsets there are
(lookups.py).
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional, Pattern, Tuple

from kafka.structs import TopicPartition

__all__ = ['Limit', 'SinkOptions', 'SourceOptions', 'Topics']


class Limit(NamedTuple):
    """Where reading begins or ends.

    kind: 'earliest', 'latest', 'committed', 'offsets', 'timestamps' or 'timestamp'. offsets: of
    kind offsets, where -1 is latest and -2 earliest, and of kind timestamps, in milliseconds; else
    empty. timestamp: of kind timestamp, of all partitions, in milliseconds. is_lenient: whether a
    partition without a record at or after its time is at its end, rather than an error.
    """

    kind: str
    offsets: Mapping[TopicPartition, int] = {}
    timestamp: Optional[int] = None
    is_lenient: bool = False


class Topics(NamedTuple):
    """What is read.

    kind: 'assign', 'subscribe' or 'subscribePattern'. names: of kind subscribe. pattern: of kind
    subscribePattern; a topic is read if ``pattern.search(topic)`` finds something. partitions: of
    kind assign.
    """

    kind: str
    names: Tuple[str, ...] = ()
    pattern: Optional[Pattern[str]] = None
    partitions: Tuple[TopicPartition, ...] = ()


class SourceOptions(NamedTuple):
    """All that a reader is to go by; it can be pickled, and shows no secret.

    end: of batch queries only. config: for BoundedReader or KafkaConsumer, without a group.
    retries: how often a lookup is tried in all, with retry_interval_ms between. max_offsets and
    min_offsets: of a micro-batch; max_delay: seconds that min_offsets are waited for. group_id:
    kafka.group.id. commit_offsets: the group to commit to, if any.
    """

    topics: Topics
    start: Limit
    end: Optional[Limit]
    config: Dict[str, Any]
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 120000
    retries: int = 3
    retry_interval_ms: int = 1000
    max_offsets: Optional[int] = None
    min_offsets: Optional[int] = None
    max_delay: float = 900.0
    min_partitions: Optional[int] = None
    max_records_per_partition: Optional[int] = None
    include_headers: bool = False
    group_id: Optional[str] = None
    group_id_prefix: str = 'spark-kafka-source'
    commit_offsets: Optional[str] = None
    pushdown: bool = False
    low_latency: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], is_streaming: bool) -> SourceOptions:
        """Return what the options of a DataFrameReader or DataStreamReader mean.

        Raises InvalidOptionError, a KafkaConfigurationError and ValueError, with the option's name,
        what was given and what is allowed.
        """
        raise NotImplementedError


class SinkOptions(NamedTuple):
    """All that a writer is to go by; it can be pickled, and shows no secret.

    topic: of all rows, None if the column says it. config: for KafkaProducer.
    """

    topic: Optional[str]
    include_headers: bool
    config: Dict[str, Any]
    exactly_once: bool = False
    transactional_id_prefix: Optional[str] = None

    @classmethod
    def of(cls, options: Mapping[str, str], is_streaming: bool) -> SinkOptions:
        """Return what the options of a DataFrameWriter or DataStreamWriter mean.

        Raises InvalidOptionError, as SourceOptions.of() does.
        """
        raise NotImplementedError
