"""What costs how much: programs to be run, beside other clients where there are any.

A package so that these are meant by its name: wheels of others bring one of the same name along.
"""
