"""One file per kind of source: each turns what a tool recorded into batches of the timeline's model."""
