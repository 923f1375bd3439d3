"""What may leave the machine: secrets are masked, variables and arguments pass by an allow-list."""
