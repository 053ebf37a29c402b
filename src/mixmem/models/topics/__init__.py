"""Topic models: latent Dirichlet allocation on documents."""
