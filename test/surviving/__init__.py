"""What must survive any change of the package's form: names, patch seams, logger names, pickles.

``names.txt``, ``loggers.txt`` and ``pickles.txt`` were made by collect.py on the package as it was
before its rooms were moved, and are only ever added to. test_surviving.py walks them.
"""
