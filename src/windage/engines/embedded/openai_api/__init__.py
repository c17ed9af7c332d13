"""OpenAI-compatible routes of the embedded engine, with token capture."""
