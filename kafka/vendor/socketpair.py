"""kafka.vendor.socketpair (1.3 to 2.x): empty. It added socketpair() on Windows when imported."""
