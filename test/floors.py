"""Which floor each folder is on, and what is for users only; for test_architecture.py.

A module whose docstring ends with "Pure." touches nothing and may be imported from every floor.
"""

from __future__ import annotations

HEIGHT = {'words': 0, 'wire': 1, 'net': 2, 'drivers': 3, 'clients': 4, 'faces': 5}

# The longest prefix decides. A module that no line covers has no place yet: give it one.
FLOOR = {
    'kafka': 'faces',
    'kafka.__main__': 'faces',
    'kafka.blocking': 'clients',
    'kafka.broker_errors': 'words',
    'kafka.cli': 'faces',
    'kafka.client': 'clients',
    'kafka.client_errors': 'words',
    'kafka.cluster': 'wire',
    'kafka.codec': 'wire',
    'kafka.common': 'faces',
    'kafka.config': 'words',
    'kafka.conn': 'net',
    'kafka.consumer': 'clients',
    'kafka.consumer.kafka': 'faces',
    'kafka.consumer_record': 'words',
    'kafka.context': 'clients',
    'kafka.coordinator': 'drivers',
    'kafka.errors': 'words',
    'kafka.evented': 'clients',
    'kafka.exactly_once': 'clients',
    'kafka.future': 'words',
    'kafka.interceptors': 'words',
    'kafka.internals': 'words',
    'kafka.metrics': 'words',
    'kafka.net': 'net',
    'kafka.oauth': 'faces',
    'kafka.offsets': 'drivers',
    'kafka.partitioner': 'wire',
    'kafka.producer': 'clients',
    'kafka.protocol': 'wire',
    'kafka.record': 'wire',
    'kafka.sasl': 'faces',
    'kafka.serializer': 'words',
    'kafka.simple_client': 'clients',
    'kafka.spark': 'faces',
    'kafka.structs': 'words',
    'kafka.testing': 'faces',
    'kafka.util': 'words',
    'kafka.vendor': 'faces',
    'kafka.version': 'words',
}

# Nobody imports these: they are made for users.
FOR_USERS_ONLY = {
    'kafka',
    'kafka.__main__',
    'kafka.cli',
    'kafka.cli.broker',
    'kafka.cli.import_hook',
    'kafka.cli.run',
    'kafka.common',
    'kafka.consumer.kafka',
    'kafka.oauth',
    'kafka.oauth.abstract',
    'kafka.sasl',
    'kafka.sasl.abc',
    'kafka.sasl.gssapi',
    'kafka.sasl.msk',
    'kafka.sasl.oauth',
    'kafka.sasl.plain',
    'kafka.sasl.scram',
    'kafka.sasl.sspi',
    'kafka.spark',
    'kafka.testing',
    'kafka.testing.pytest_plugin',
    'kafka.vendor',
    'kafka.vendor.enum34',
    'kafka.vendor.selectors34',
    'kafka.vendor.six',
    'kafka.vendor.socketpair',
}
