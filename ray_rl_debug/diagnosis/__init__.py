"""Snapshot → Report: the rules asked, the verdict given, what was seen summed up."""
