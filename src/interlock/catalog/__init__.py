"""Which tools exist, and under which public names.

Owns: public names, the registry of sources and its revision, the refresh of one source, results for the model.
Never: holds a connection, judges an approval, or decodes a public name.
"""
