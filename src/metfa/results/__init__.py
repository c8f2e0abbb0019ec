"""What was sampled, and the questions that can be asked of it without the model."""
