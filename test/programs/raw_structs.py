"""Records by hand: MessageSet, Message and the structs of kafka.protocol, over one connection."""
import socket
import sys
import time

from kafka.conn import BrokerConnection, collect_hosts
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.message import Message, MessageSet, PartialMessage
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.produce import ProduceRequest, ProduceRequest_v0
from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Int16, Int32, Schema, String


class Audit(Struct):
    SCHEMA = Schema(('version', Int16), ('who', String('utf-8')), ('rows', Array(Int32)))


def ask(conn, request):
    future = conn.send(request)
    while not future.is_done:
        if conn.recv() is None:
            time.sleep(0.005)
    if future.failed():
        raise future.exception
    return future.value


audit = Audit(1, 'auditor', [3, 5, 8])
again = Audit.decode(audit.encode())
print('%s %s' % (again == audit, again))

one = Message(b'plain', key=b'k0')
two = Message(audit.encode(), key=b'k1')
encoded = MessageSet.encode([(0, one.encode()), (1, two.encode())])
decoded = MessageSet.decode(encoded)
print([(offset, message.key, message.validate_crc()) for offset, size, message in decoded])
cut = MessageSet.decode(encoded[4:-3], bytes_to_read=len(encoded) - 7)
print('%d whole, then %r' % (len(cut) - 1, isinstance(cut[-1][-1], PartialMessage)))

topic = sys.argv[2]
host, port, afi = collect_hosts(sys.argv[1])[0]
conn = BrokerConnection(host, port, afi, api_version=(0, 9))
while not conn.connected():
    conn.connect()
    time.sleep(0.005)
conn.check_version(timeout=20)

meta = ask(conn, MetadataRequest[0]([topic]))
print('%s %d' % (type(meta) is MetadataResponse[0], len(meta.brokers)))

request = ProduceRequest[0](required_acks=1, timeout=10000, topics=[
    (topic, [(0, [(0, one.encode()), (0, two.encode())])])])
print(type(request) is ProduceRequest_v0)
(name, ((partition, error, offset),)), = ask(conn, request).topics
print('produced: error %d at %d' % (error, offset))

fetched = ask(conn, FetchRequest[0](-1, 200, 1, [(topic, [(0, 0, 65536)])]))
for name, partitions in fetched.topics:
    for partition, error, highwater, messages in partitions:
        print('fetched: error %d, highwater %d' % (error, highwater))
        for offset, size, message in messages:
            print('%d %s %d' % (offset, message.key, message.magic))
        print(Audit.decode(messages[-1][-1].value).who)
conn.close()
