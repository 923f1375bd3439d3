"""The folder that a capture leaves: the snapshot and its report as files, written within bounds."""
