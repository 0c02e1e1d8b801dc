"""Parts of the evented clients of 1.x and 2.x, for programs that use these clients directly."""
