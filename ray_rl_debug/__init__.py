"""ray-rl-debug: names the rank, actor, process or service that hangs an RL run on Ray, and why.

Importing this package stays instant: no Ray, no torch, no network.
"""

__version__ = "0.1.0"
