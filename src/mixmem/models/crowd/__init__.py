"""True labels from the labels of a crowd: classes of tasks, and what every worker's labels are worth."""
