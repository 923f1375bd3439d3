"""The report as one self-contained page: nothing is loaded from anywhere, and nothing that came from outside can run in it."""

from ray_rl_debug.render.html.page import render

__all__ = ["render"]
