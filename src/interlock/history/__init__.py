"""What a Thread remembers: the Journal, the fold of its events, and the cutting of long texts.

Owns: the one writer of a Thread's events, their projection into history and items, truncation.
Never: knows how events are stored (`stores` does), or asks a server or a model.
"""
