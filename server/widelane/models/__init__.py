"""The nouns: frozen pydantic types, one module a subject. They import nothing of ours but errors."""
