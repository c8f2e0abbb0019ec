"""From a request to samples: noisy copies in batches, explained, with addressed random numbers."""
