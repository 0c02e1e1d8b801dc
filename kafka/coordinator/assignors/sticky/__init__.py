"""The sticky assignor (2.0)."""
