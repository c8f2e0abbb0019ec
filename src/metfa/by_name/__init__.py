"""Methods, noises and thresholds by name, as the command line and study files write them."""
