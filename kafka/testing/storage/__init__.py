"""What outlives the process: the folder, its journal, and what is kept in it."""
