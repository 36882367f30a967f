"""Pure arithmetic from a plan to its verdict, ladder, units and quota admission."""
