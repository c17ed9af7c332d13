"""Environments: tasks, tools, rewards."""
