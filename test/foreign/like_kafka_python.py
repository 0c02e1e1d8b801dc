"""What clients have in common whose interface is that of kafka-python, aiokafka among them."""

from __future__ import annotations

from typing import Any, Dict

from checking import Record


def record_of(found: Any) -> Record:
    """Return a consumed record as the checks want it."""
    time_ms = found.timestamp if found.timestamp is not None else -1
    headers = tuple(map(tuple, found.headers or ()))
    return Record(found.partition, found.offset, found.key, found.value, headers, time_ms)


def config_of(cluster: Dict[str, Any]) -> Dict[str, Any]:
    """Return the options for reaching a cluster, its certificates left out."""
    config: Dict[str, Any] = {'bootstrap_servers': cluster['bootstrap'].split(',')}
    login = cluster.get('login')
    if login:
        config.update(
            {
                'security_protocol': 'SASL_SSL',
                'sasl_mechanism': login['mechanism'],
                'sasl_plain_username': login['user'],
                'sasl_plain_password': login['password'],
            }
        )
    return config
