"""Real Apache Kafka brokers for the tests and for a first try; nothing here is installed.

releases.txt        which releases there are, and which sets they belong to
<release>/kafka-bin the jars, fetched by build_integration.sh
<release>/resources the configuration templates: a link to those of the release's era in eras/
cluster.py          start, stop and break a cluster; guard.py cleans up after a program that cannot
start.py            a cluster in the foreground, for work at a desk
run.py              the README's first command
release_table.py    the table in docs/brokers.rst
"""
