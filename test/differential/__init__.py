"""The same requests to a real broker and to the embedded one of that release, answer by answer."""
