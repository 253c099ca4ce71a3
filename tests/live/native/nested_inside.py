"""Imported by the innermost function of nested.py."""
import __main__

__main__.imported()
