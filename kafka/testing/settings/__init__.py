"""Configs of brokers, topics, groups and client metrics, and features of the cluster."""
