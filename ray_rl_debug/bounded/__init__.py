"""Calls, programs and files of others that can neither hold us up nor lead us astray, and the event that asks us to stop."""
