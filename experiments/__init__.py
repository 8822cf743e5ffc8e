"""Experiments: a folder each, with what it asks (README.md), run.py, and what came out (results/).

A folder that fills a page of the docs has page.py too. What several of them share is in _lab.
"""
