"""What exists only for programs that use the evented clients of 1.x and 2.x themselves."""
