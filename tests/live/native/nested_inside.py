"""Imported by nested.py at its innermost."""
import __main__

__main__.imported()
