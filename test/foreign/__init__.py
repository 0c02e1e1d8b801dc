"""Clients that nobody here wrote, at work on the embedded broker.

``python -m test.foreign`` makes an environment for each of them under ``.cache/foreign``, runs its
steps on embedded clusters of several releases and tells what came out. Nothing here is collected
by pytest; test/integration/test_foreign.py runs a small part of it.
"""
