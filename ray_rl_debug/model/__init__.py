"""The documents that we write and read, and what they are made of."""
