"""Logs of any program: who wrote a line and when, what failed, how far the work came. Pure: bytes in, facts out."""
