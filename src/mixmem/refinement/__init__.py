"""From the start to the answer: sampling, EM, and the likelihood of genotypes."""
