"""The rows that Spark reads: their columns, and what a program may choose of them.

Owns the names and types of the columns, which are those of the JVM connector, and the check of a
schema that a program gave. Does not own: how records become columns (kafka.record.vectors). Pure.
"""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

from kafka.errors import KafkaConfigurationError

__all__ = ['COLUMNS', 'HEADERS', 'columns_of', 'ddl', 'plain_name']

#: Name -> type, as Spark writes it, in the order of the columns.
COLUMNS: Dict[str, str] = {
    'key': 'binary',
    'value': 'binary',
    'topic': 'string',
    'partition': 'int',
    'offset': 'bigint',
    'timestamp': 'timestamp',
    'timestampType': 'int',
}
#: The column that comes with the option includeHeaders.
HEADERS = 'headers'
_HEADERS_TYPE = 'array<struct<key:string,value:binary>>'


def _types(has_headers: bool) -> Dict[str, str]:
    return {**COLUMNS, HEADERS: _HEADERS_TYPE} if has_headers else dict(COLUMNS)


def ddl(has_headers: bool) -> str:
    """Return the schema of all rows as Spark reads it."""
    return ', '.join('%s %s' % each for each in _types(has_headers).items())


def columns_of(schema: Any, has_headers: bool) -> Tuple[str, ...]:
    """Return the columns of a schema: the whole one, or what a program gave to read less.

    Arguments: schema: a StructType.
    Raises: KafkaConfigurationError for a column that there is not, or has another type, or one that
        must not be null, or is named twice.
    """
    types = _types(has_headers)
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        found = field.dataType.simpleString()
        if field.name not in types:
            hint = ' (set includeHeaders to true)' if field.name == HEADERS else ''
            raise KafkaConfigurationError(
                'the schema names the column %s%s; there are %s'
                % (field.name, hint, ', '.join(types))
            )
        if found != types[field.name]:
            raise KafkaConfigurationError(
                'the schema gives column %s the type %s; it is %s'
                % (field.name, found, types[field.name])
            )
        if not field.nullable:
            raise KafkaConfigurationError(
                'the schema says that column %s is never null: leave that out' % field.name
            )
        if names.count(field.name) > 1:
            raise KafkaConfigurationError(
                'the schema names the column %s twice: leave one out' % field.name
            )
    if not schema.fields:
        raise KafkaConfigurationError('the schema has no column; there are %s' % ', '.join(types))
    return tuple(names)


def plain_name(column: str) -> str:
    """Return what kafka.record.vectors calls a column."""
    return 'timestamp_type' if column == 'timestampType' else column


def plain_names(columns: Sequence[str]) -> Tuple[str, ...]:
    """Return the same of several."""
    return tuple(map(plain_name, columns))
