"""The companion of a run: watches it at next to no cost, looks closely when progress stops, tells people, keeps the history."""
