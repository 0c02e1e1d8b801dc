"""Who logs in and how, over what, and who may do what."""
