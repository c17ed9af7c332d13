"""The ragged layout of a batch: row offsets over 1-D arrays of action tokens, and the one recurrence."""

from windage.segments.scan import forward_scan, reverse_scan
from windage.segments.segments import Segments

__all__ = ["Segments", "forward_scan", "reverse_scan"]
