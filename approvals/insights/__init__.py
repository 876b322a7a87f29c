"""Figures over the gates of a person's teams, each of which leads to the very gates that it counts.

The gates that closed in a period are read once, as plain rows; every figure is a pure function of those rows, and the
list behind a figure is the rows that it counted. So a number and its list cannot differ.
"""
