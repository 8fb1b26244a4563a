"""Answers as text: a renderer for each type of answer, and what a terminal can show."""
