"""Make and delete topics with CreateTopicsRequest: kafka-python 1.3 had no admin client yet.

    make_topics.py BROKERS NAME [PARTITIONS]
"""
import sys
import time

from kafka.client_async import KafkaClient
from kafka.errors import TopicAlreadyExistsError, for_code
from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.metadata import MetadataRequest


def controller(client):
    request = MetadataRequest[1]([])
    node = client.least_loaded_node()
    return call(client, node, request).controller_id


def call(client, node, request):
    client.await_ready(node)
    future = client.send(node, request)
    client.poll(timeout_ms=20000, future=future)
    assert future.succeeded(), future.exception
    return future.value


def main(brokers, name, partitions=3):
    client = KafkaClient(bootstrap_servers=brokers)
    version = client.api_version(CreateTopicsRequest, max_version=1)
    node = controller(client)
    topics = [(name, int(partitions), 1, [], [('retention.ms', '60000')])]
    for _ in range(2):
        if version == 0:
            request = CreateTopicsRequest[0](topics, 10000)
        else:
            request = CreateTopicsRequest[1](topics, 10000, False)
        for answer in call(client, node, request).topic_errors:
            error = for_code(answer[1])
            print('%s' % ('exists' if error is TopicAlreadyExistsError else error.__name__))
    for _ in range(100):
        client.poll(future=client.set_topics([name, 'x'][:1]))
        found = client.cluster.partitions_for_topic(name)
        if found:
            break
        client.cluster.request_update()
        time.sleep(0.1)
    print(sorted(found))
    answer = call(client, node, DeleteTopicsRequest[0]([name], 10000))
    print([code for topic, code in answer.topic_error_codes])
    client.close()


main(*sys.argv[1:])
