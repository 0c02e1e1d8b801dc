"""How two connectors are compared: by the same job with each, and by kinds of errors.

Owns the kinds, which are told apart by what stands in an error. Theirs are classes of Java, so the
texts need not be the same; what ours must name besides is said where the case is.
"""

from __future__ import annotations

import json
import re

from test.spark.oracle import KAFKA, OURS

#: What stands in an error of a kind: of the JVM connector's, of ours.
KINDS = {
    'option': (
        r'IllegalArgument|NumberFormat|PatternSyntax|NoSuchElement|Config(uration)?Exception|bootstrap',
        r'InvalidOptionError|KafkaConfigurationError',
    ),
    'nowhere': (r'No resolvable bootstrap urls', r'cannot be resolved'),
    'other partitions': (
        r"don't match what are assigned|must specify all TopicPartitions",
        r'must name each partition',
    ),
    'start behind end': (r'resolved start offset', r'is after the end'),
    'no topic': (r'UnknownTopicOrPartition', r'UnknownTopicOrPartition'),
    'no record': (r'No offset matched from request', r'no record of'),
    'lost': (r'Some data may have been lost', r'KAFKA_DATA_LOSS'),
}


def refuses(outcome, kind, connector):
    """Tell whether an outcome is an error of a kind."""
    failure = outcome.failure
    said = failure and '\n'.join([failure.name, str(failure.condition), *failure.java])
    return bool(failure) and bool(
        re.search(KINDS[kind][connector == OURS], said + '\n' + failure.text)
    )


def both(oracle, broker, job, options, folder=None):
    """Run a job with each connector; return the outcomes, the JVM connector's first.

    Arguments: folder: where checkpoints go, for jobs that have one.
    """
    options = {'kafka.bootstrap.servers': broker.bootstrap, **options}
    outcomes = []
    for connector in (KAFKA, OURS):
        more = [] if folder is None else [str(folder / connector)]
        outcomes.append(oracle.do(job, connector, options, *more))
    return outcomes


def text(**partitions):
    """Return the JSON of {topic: {partition: number}}, from {topic: [number, ...]}."""
    return json.dumps(
        {
            topic: {str(index): number for index, number in enumerate(numbers)}
            for topic, numbers in partitions.items()
        }
    )
