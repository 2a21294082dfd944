"""What a model cites from its memories, hidden in its messages.

Owns: the markup of citations, what it says, how often each source was used.
Never: touches what the model said before it; its own history keeps the raw text.
"""
