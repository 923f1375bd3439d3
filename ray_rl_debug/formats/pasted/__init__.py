"""Stacks as people paste them: any form, several in one text, with remarks around them.

`lines` takes prefixes off, the readers say what a line is, `stream` puts the processes together.
"""
