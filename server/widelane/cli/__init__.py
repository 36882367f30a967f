"""The command line: headless verbs over the same functions as the tools. It holds no logic of its own."""
