"""The numbers behind the four questions: plain points with units and words, no drawing.

Shares are between 0 and 1, money in US dollars, time in hours unless a name says otherwise. The
formulae are those of `engine.estimate` and `engine.cost`; what stands here is which of them a
question shows, over which range, and what it means in a sentence.
"""
