"""What texts name: methods and noises, as the command line and the files of studies give them."""
