"""The run in one picture: spans and counters of many sources, aligned, written as a Perfetto or Chrome trace, and the tables derived from them."""
