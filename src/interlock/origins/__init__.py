"""Which call of the past lets an app read which resource.

Owns: what is remembered of completed calls, the checks of a read that names one, that read.
Never: grants anything but that read, or takes yesterday's catalogue or policy for today's (ORI-4).
"""
