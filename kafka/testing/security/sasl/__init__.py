"""How clients log in to an embedded broker over SASL: mechanisms, users, the way to a principal."""
