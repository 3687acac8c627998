"""Small tools of the impure layers: clock, guarded tasks, retry."""
