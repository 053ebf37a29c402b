"""What cells say of their rows: likelihoods by code, memberships, rows with memberships integrated out."""
