"""A cluster of scripted brokers, and connections to them, for the tests of the blocking client.

Owns brokers that answer requests of the old versions from a few dicts. They read requests and write
answers with the declared messages, so the client's own encoders and decoders are checked against
something they share no code with. Connections keep an answer until it is read: what is left unread
at the end is a mistake of the client.
"""

from __future__ import annotations

import struct

from kafka.errors import KafkaConnectionError
from kafka.protocol import api, commit, fetch, find_coordinator, list_offsets, metadata, produce


class Cluster:
    """Brokers by node id, topics with their leaders, and a record of what happened.

    Attributes a test may change: topics {name: [leader of each partition]}, topic_errors,
    partition_errors {(topic, partition): code}, down (addresses that refuse), answers {api key:
    function(node id, request) -> response}, trace (list of (what, host, api name)).
    """

    def __init__(self, nodes=1, topics=None):
        self.brokers = {n: ('host%d' % n, 9000 + n) for n in range(nodes)}
        self.topics = dict(topics or {})
        self.topic_errors = {}
        self.partition_errors = {}
        self.down = set()
        self.breaking = {}
        self.answers = {}
        self.trace = []
        self.requests = []
        self.connections = []

    @property
    def hosts(self):
        return ['%s:%d' % address for address in self.brokers.values()]

    def node(self, address):
        return {address: n for n, address in self.brokers.items()}[address]

    def connect(self, host, port, timeout=120):
        """Stand in for the class KafkaConnection."""
        conn = Connection(self, host, port, timeout)
        self.connections.append(conn)
        return conn

    def sent(self, name):
        """Return (node id, request) of each request of one kind, in order."""
        return [(n, request) for n, request in self.requests if type(request).__name__ == name]

    def unread(self):
        """Return the connections on which an answer was left."""
        return [conn for conn in self.connections if conn.waiting]

    # -- what brokers answer ---------------------------------------------------------------------

    def answer(self, node, request):
        scripted = self.answers.get(request.api_key)
        if scripted is not None:
            found = scripted(node, request)
            if found is not None:
                return found
        return getattr(self, '_answer_%d' % request.api_key)(node, request)

    def _answer_3(self, node, request):
        names = [t.name for t in request.topics] or sorted({*self.topics, *self.topic_errors})
        return metadata.MetadataResponse(
            brokers=[
                metadata.MetadataResponseBroker(node_id=n, host=host, port=port)
                for n, (host, port) in self.brokers.items()
            ],
            topics=[self._describe(name) for name in names],
        )

    def _describe(self, name):
        leaders = self.topics.get(name, [])
        return metadata.MetadataResponseTopic(
            name=name,
            error_code=self.topic_errors.get(name, 0 if name in self.topics else 3),
            partitions=[
                metadata.MetadataResponsePartition(
                    partition_index=p,
                    leader_id=leader,
                    error_code=self.partition_errors.get((name, p), 5 if leader == -1 else 0),
                    replica_nodes=[max(leader, 0)],
                    isr_nodes=[max(leader, 0)],
                )
                for p, leader in enumerate(leaders)
            ],
        )

    def _answer_0(self, node, request):
        return produce.ProduceResponse(
            responses=[
                produce.TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[
                        produce.PartitionProduceResponse(
                            index=p.index, error_code=0, base_offset=100 * node + p.index
                        )
                        for p in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    def _answer_1(self, node, request):
        return fetch.FetchResponse(
            responses=[
                fetch.FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        fetch.PartitionData(
                            partition_index=p.partition, error_code=0, high_watermark=7, records=b''
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _answer_2(self, node, request):
        return list_offsets.ListOffsetsResponse(
            topics=[
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        list_offsets.ListOffsetsPartitionResponse(
                            partition_index=p.partition_index,
                            error_code=0,
                            old_style_offsets=[9, 4][: p.max_num_offsets],
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _answer_8(self, node, request, error=0):
        return commit.OffsetCommitResponse(
            topics=[
                commit.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        commit.OffsetCommitResponsePartition(
                            partition_index=p.partition_index, error_code=error
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _answer_9(self, node, request, error=0):
        return commit.OffsetFetchResponse(
            topics=[
                commit.OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[
                        commit.OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=-1 if error else 40 + node,
                            metadata='',
                            error_code=error,
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _answer_10(self, node, request):
        last = max(self.brokers)
        host, port = self.brokers[last]
        return find_coordinator.FindCoordinatorResponse(
            error_code=0, node_id=last, host=host, port=port
        )


class Connection:
    """What a KafkaConnection is to the client, and no more.

    ``cluster.breaking`` {(host, 'send' or 'recv'): exception} makes that call fail once.
    """

    def __init__(self, cluster, host, port, timeout):
        self.cluster, self.host, self.port, self.timeout = cluster, host, port, timeout
        self.waiting = []
        self.closed = 0
        self.reinits = 0
        self._check()

    def _check(self):
        if (self.host, self.port) in self.cluster.down:
            raise KafkaConnectionError('%s:%s is down' % (self.host, self.port))

    def _break(self, what):
        error = self.cluster.breaking.pop((self.host, what), None)
        if error is not None:
            raise error

    def send(self, request_id, payload):
        self._check()
        assert struct.unpack('>i', payload[:4]) == (len(payload) - 4,)
        header, request = api.decode_request(payload[4:])
        assert header.correlation_id == request_id
        self.cluster.trace.append(('send', self.host, type(request).__name__))
        node = self.cluster.node((self.host, self.port))
        self.cluster.requests.append((node, request))
        if getattr(request, 'acks', 1) != 0:
            response = self.cluster.answer(node, request)
            version = header.api_version
            self.waiting.append((request_id, api.encode_response(response, version, request_id)))
        self._break('send')

    def recv(self, request_id):
        self._check()
        self._break('recv')
        expected, answer = self.waiting.pop(0)
        assert expected == request_id, 'this answer belongs to another request'
        self.cluster.trace.append(('recv', self.host, request_id))
        return answer

    def close(self):
        self.closed += 1
        self.waiting.clear()

    def copy(self):
        copied = object.__new__(Connection)
        vars(copied).update(vars(self), waiting=[], closed=0, reinits=0)
        self.cluster.connections.append(copied)
        return copied

    def __deepcopy__(self, memo):
        return self.copy()

    def reinit(self):
        self.close()
        self._check()
        self.reinits += 1
