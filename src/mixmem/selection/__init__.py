"""What a user need not know: alpha0, and the number of components."""
