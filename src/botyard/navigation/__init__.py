"""Published methods of collision and obstacle avoidance.

They compute on arrays of many worlds, in compiled code.
"""
