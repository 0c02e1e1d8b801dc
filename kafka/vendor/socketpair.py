"""kafka.vendor.socketpair (1.3 to 2.x): empty. It gave Windows a socketpair(), by import alone."""
