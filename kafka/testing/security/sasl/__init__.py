"""SASL logins to embedded brokers: mechanisms, users and the state of each login."""
