"""The limits of time by which the table of outlooks judges: factors of the longest call so far, seconds, and counts."""

from __future__ import annotations

USUAL_FACTOR = 3.0
"""A call is overdue when it takes this many times the longest of its name so far,"""
OVERDUE_FLOOR_S = 5.0
"""and at least this long: calls of milliseconds vary by more than any factor."""
FROZEN_FLOOR_S = 2.5
"""The same for a call that stands at one line without a clock all the while."""
FAR_OVERDUE = 30.0
"""Calls that take this many times the longest need no more than the floor of frozen ones."""
LANE_FACTOR = 10.0
"""A call that waits inside of its process while other calls of it finish is overdue at this many times the longest of its name,"""
NOT_OVERDUE = 1.5
"""Up to this many times the longest so far, a call is as usual."""
RARE_CALL_S = 900.0
"""An evaluation or a checkpoint, which only some of the calls of one name make, may take so long: until then its length alone accuses nobody."""
LONG_NAP_S = 300.0
"""Nobody pauses for longer in one sleep while others wait: rates are limited by the minute, and who is to come back later asks sooner."""
ENOUGH_CALLS = 2
"""Finished calls that a working one is compared with: the first of all is often a warm-up."""
MANY_CALLS = 5
"""With fewer finished calls one that goes on inside is overdue only when it takes far longer: evaluations are rare and of many lengths."""
PLAIN_SLEEP_S = 600.0
"""A program that is no Python and sleeps is not called hung if its clock ends that within so long."""
LONG_WINDOW_S = 15.0
"""A sleeper that is found at one line all through such a window does not only pause."""
FEW_WAKES = 4
"""Times a thread may wake up in the window, beside twice for each look, and still be in one pause."""
ANSWERS_FIT = 2.0
"""A call that is this many times as old as the quiet of its connection may have had such answers before,"""
OLD_CALL_S = 10.0
"""and at least this old: starting up takes its time too. The same of a call that waits while others of its process finish."""
