"""What every part of the package may use and no program needs: no name here is promised."""
