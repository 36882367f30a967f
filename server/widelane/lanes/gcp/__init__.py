"""Google Compute Engine, spoken to by google-cloud-compute (imported when the first call is made)."""
