"""How the distribution kafka-evergreen is built; the import name is ``kafka``."""

from __future__ import annotations

import os
import re

from setuptools import find_packages, setup

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    """Return the text of a file that stands beside this one."""
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        return file.read()


# There are wheels of isal for these; elsewhere it needs an assembler.
ISAL = "isal; platform_machine in 'x86_64 AMD64 aarch64 arm64'"
EXTRAS = {
    'isal': [ISAL],
    'snappy': ['python-snappy'],
    'lz4': ['lz4', 'xxhash'],
    'zstd': ['zstandard'],
    'crc32c': ['crc32c'],
    'arrow': ['pyarrow', 'numpy'],
    'py2': ['fissix'],
    'tls': ['cryptography'],
    'gssapi': ['gssapi'],
    'msk': ['botocore'],
    'spark': ['pyspark>=4.0', 'pyarrow', 'numpy', 'crc32c'],
}
# Not gssapi: it is compiled against the Kerberos of the system, which not everybody has. Nor spark:
# it is 400 MB, and needs Java.
APART = ('gssapi', 'spark')
EXTRAS['all'] = sorted(
    {each for name, some in EXTRAS.items() if name not in APART for each in some}
)

setup(
    name='kafka-evergreen',
    version=re.search(r"__version__ = '(.+)'", read('kafka/version.py')).group(1),
    description='Apache Kafka client in pure Python: one engine for every broker since 0.8.0',
    long_description=read('README.rst'),
    long_description_content_type='text/x-rst',
    license='Apache-2.0',
    keywords='apache kafka client producer consumer',
    python_requires='>=3.8',
    packages=find_packages(include=['kafka', 'kafka.*', 'pyspark_kafka']),
    package_data={'kafka': ['py.typed']},
    zip_safe=False,
    # The package needs nothing. Programs of 2015 import six and count on a client that brings it.
    install_requires=['six'],
    extras_require=EXTRAS,
    # The name is that of the module, so that ``-p kafka.testing.pytest_plugin`` is the same plugin.
    entry_points={'pytest11': ['kafka.testing.pytest_plugin = kafka.testing.pytest_plugin']},
    classifiers=[
        'Development Status :: 3 - Alpha',
        'Intended Audience :: Developers',
        'Framework :: Pytest',
        'Operating System :: OS Independent',
        'Programming Language :: Python :: 3',
        'Programming Language :: Python :: 3 :: Only',
        'Programming Language :: Python :: 3.8',
        'Programming Language :: Python :: 3.9',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Programming Language :: Python :: Implementation :: CPython',
        'Topic :: Software Development :: Libraries :: Python Modules',
        'Topic :: System :: Networking',
        'Typing :: Typed',
    ],
)
