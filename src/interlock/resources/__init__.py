"""What servers offer to read: the model's three resource tools, and what stands behind them.

Owns: their arguments, routing to exactly one server or all, the shapes of their output, URI templates.
Never: caches a listing, opens a URI itself, asks for approval, or cuts its output (`history.clip` does).
"""
