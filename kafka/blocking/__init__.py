"""What the clients of 0.9.5 and 1.x stand on: requests whose callers wait for the answers."""
