"""Published methods of collision and obstacle avoidance.

The methods compute on arrays of many worlds, in compiled code.
"""
