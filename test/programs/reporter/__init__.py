"""A package of 2014 whose modules use `async` as a name; started as reporter.daily."""
