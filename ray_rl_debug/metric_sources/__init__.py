"""Metrics of a training run from what its loggers wrote: one module for each form, and the choice between them."""
