"""Where machines come from. One package a lane, the same file names in each, behind `protocol.Lane`."""
