"""What an inference engine produced beside what a reference produces, and whether batches of rollouts hold what a trainer needs. Pure."""
