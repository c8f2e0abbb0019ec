"""The only package that knows data frames: pandas and polars.

A frame is worked on as codes, float64 (rows, columns): numbers as they are, true and false as 1 and 0, dates and
durations as days (dates since 1970), and labels (categories, texts and all else) as places in a list of labels. A
missing value is NaN. `Columns` makes a frame of codes again, with the names and types of the first.
"""
