"""The network floor: an I/O loop, connections to brokers and what secures them."""
