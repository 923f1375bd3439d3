"""Where rollouts come from: inference servers, a model in Transformers, recordings, and batches that trainers saved."""
