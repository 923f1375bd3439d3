"""A small cluster that hangs for a real reason, to try the tool on."""
