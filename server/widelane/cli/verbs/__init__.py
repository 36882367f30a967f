"""One module a group of verbs; each is loaded only when it is called."""
