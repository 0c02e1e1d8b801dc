# Which release is that broker, and which topics has it? For the prompt, with kafka-python 1.x.
import socket
import sys
import time

from kafka import BrokerConnection
from kafka.common import NodeNotReadyError
from kafka.conn import ConnectionStates, get_ip_port_afi
from kafka.protocol.api import RequestHeader
from kafka.protocol.metadata import MetadataRequest


def wait(conn, until, seconds=20):
    end = time.time() + seconds
    while not until() and time.time() < end:
        if conn.connected():
            conn.recv()
        else:
            conn.connect()
        time.sleep(0.01)
    return until()


def changed(conn):
    states.append(conn.state)


states = []
host, port, afi = get_ip_port_afi(sys.argv[1].split(',')[0])
conn = BrokerConnection(host, port, afi, client_id='probe', request_timeout_ms=10000,
                        state_change_callback=changed)
print('%s %s' % (conn.disconnected(), conn.blacked_out()))
conn.connect()
early = conn.send(MetadataRequest[0]([]))
if conn.connecting():
    print(type(early.exception) is NodeNotReadyError)
else:
    print(True)
wait(conn, conn.connected)
print(conn.connected() and conn.state is ConnectionStates.CONNECTED)

request = MetadataRequest[0]([sys.argv[2]])
header = RequestHeader(request, correlation_id=7, client_id='probe')
print('%d bytes of header' % len(header.encode()))
futures = [conn.send(request) for _ in range(3)]
print('%d in flight, more: %s' % (len(conn.in_flight_requests), conn.can_send_more()))
wait(conn, lambda: all(f.is_done for f in futures))
for f in futures[:1]:
    for error, topic, partitions in f.value.topics:
        print('%s error %d, partitions %s' % (
            'topic' if topic == sys.argv[2] else topic, error, sorted(p[1] for p in partitions)))

version = conn.check_version(timeout=10)
print('at least 0.9: %s' % (tuple(map(int, str(version).split('.'))) >= (0, 9)))
conn.close()
print('%s %s' % (conn.disconnected(), states[-1] is ConnectionStates.DISCONNECTED))

nobody = BrokerConnection(host, int(sys.argv[3].split(':')[1]), socket.AF_INET)
while not nobody.disconnected() or not nobody.last_attempt:
    nobody.connect()
print('refused, blacked out: %s' % nobody.blacked_out())
