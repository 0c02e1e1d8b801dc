"""Records as bytes: batches of magic 2, message sets of magic 0 and 1, and walking both."""
