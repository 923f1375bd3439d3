"""What other tools write, parsed from text or bytes: for collecting, which runs them, and for importing, which is given their files."""
