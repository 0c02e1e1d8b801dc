"""Producer ids, transactions and the transaction coordinator of an embedded cluster."""
