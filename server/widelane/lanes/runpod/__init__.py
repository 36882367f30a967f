"""RunPod, spoken to by REST v2 over httpx2, or by its own package; either is imported when the first call is made."""
