"""What runs in the interpreter of the user's code: standard library only, since nothing of ours is installed there."""
