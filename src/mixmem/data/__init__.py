"""From what a user has to codes: readers, kinds of variables, the schema and the coding."""
