"""What does a network need of its layers: treatments, writing them into a net, scores, result, page.

Not for taking a matrix apart: that is `decompose`.
"""
