"""Foundation of the blocking clients of 0.9.5 and 1.x: each call waits for its responses."""
