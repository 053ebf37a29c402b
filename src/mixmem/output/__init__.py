"""What a person sees: pages, plots, tables of files, and texts on the terminal."""
