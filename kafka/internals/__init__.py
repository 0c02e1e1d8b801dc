"""Private helpers for all parts of the package; no name here is part of the public interface."""
