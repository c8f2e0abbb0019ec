"""Results: the samples, the questions that they answer without the model, and their files."""
