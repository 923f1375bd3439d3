"""An agent's rollout code tried outside of a training run: alone, in groups, in batches, under growing concurrency.

`child` runs in the interpreter of the user's code and only runs it; everything is measured from outside (`looks`) and judged afterwards (`judge`).
`stand_in` answers like an inference engine where none is given.
"""
