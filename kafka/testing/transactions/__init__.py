"""Producer ids, transactions and their coordinators."""
