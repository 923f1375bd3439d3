"""Is the learning healthy? Numbers of a training run, and rules that judge them; pure."""
