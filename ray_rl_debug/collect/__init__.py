"""One node's facts: discovery and collectors. Every collector returns data or a gap; nothing raises through."""
