"""The event loop of a client: coroutines, timers, sockets, and which thread runs them."""
