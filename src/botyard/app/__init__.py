"""What puts a simulator together and runs it: the composition, outside of the command line."""
