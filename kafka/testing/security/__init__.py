"""Authentication, TLS and authorization of an embedded cluster."""
