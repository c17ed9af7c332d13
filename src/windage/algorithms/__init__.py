"""Windage."""
