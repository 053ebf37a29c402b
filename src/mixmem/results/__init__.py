"""What is said of a fitted model: reports, intervals, goodness of fit, imputed and simulated tables."""
