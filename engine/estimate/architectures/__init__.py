"""What tells one architecture's parameter count from another's: a row of a table each."""
